#include "worker/input/data_set/create_data_set.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"
#include "worker/input/data_set/data_set_registry.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kSeed = 7;

TEST(CreateDataSetTest, OpensBothHalvesOfAnIdxFolder) {
  InputSpec spec;
  spec.set_type("idx");
  spec.set_dir(MakeTempDir());
  WriteDataSet(spec.dir(), /*train=*/5, /*test=*/2);
  const auto train = CreateDataSet(spec, Shape({6}), kSeed, Split::kTrain);
  ASSERT_THAT(train, IsOk());
  EXPECT_EQ((*train)->num_examples(), 5);
  const auto test = CreateDataSet(spec, Shape({6}), kSeed, Split::kTest);
  ASSERT_THAT(test, IsOk());
  EXPECT_EQ((*test)->num_examples(), 2);
}

TEST(CreateDataSetTest, MakesTheSyntheticSet) {
  InputSpec spec;
  spec.set_type("synthetic");
  spec.set_synthetic_test_examples(12);
  const auto test = CreateDataSet(spec, Shape({6}), kSeed, Split::kTest);
  ASSERT_THAT(test, IsOk());
  EXPECT_EQ((*test)->num_examples(), 12);
}

TEST(CreateDataSetTest, LinksEveryTypeOfTheList) {
  const std::vector<std::string> listed = absl::StrSplit(DATA_SET_LIST, ',');
  ASSERT_THAT(DataSetRegistry::Validate(), IsOk());
  EXPECT_THAT(DataSetRegistry::Names(),
              testing::UnorderedElementsAreArray(listed));
  // Those in files have their own tests; here they are known, and want files.
  InputSpec spec;
  spec.set_dir(MakeTempDir());
  for (const std::string& type : listed) {
    spec.set_type(type);
    const auto data_set = CreateDataSet(spec, Shape({6}), kSeed, Split::kTrain);
    EXPECT_TRUE(data_set.ok() || absl::StrContains(data_set.status().message(),
                                                   "opening a data set"))
        << type << ": " << data_set.status();
  }
}

TEST(CreateDataSetTest, OffersTheNearestType) {
  InputSpec spec;
  spec.set_type("idxx");
  EXPECT_THAT(CreateDataSet(spec, Shape({6}), kSeed, Split::kTrain),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("input.type"), HasSubstr("'idx'"),
                             HasSubstr("synthetic"))));
}

}  // namespace
}  // namespace muster
