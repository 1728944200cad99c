#include "worker/ctl/table_diff.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/train_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/table_fixture.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TableDiffTest : public ::testing::Test {
 protected:
  std::unique_ptr<CheckpointReader> Save(int64_t step,
                                         const ExampleTable& table,
                                         int64_t version = 1) {
    EXPECT_THAT(SaveTablesExample(&fs_, "train", step, {table}, version),
                IsOk());
    auto reader = CheckpointReader::Open(
        &fs_, absl::StrCat("train/", CheckpointName(step)));
    EXPECT_THAT(reader, IsOk());
    return *std::move(reader);
  }

  FakeFileSystem fs_{"train"};
};

TEST_F(TableDiffTest, TheSameRows_DoNotDiffer) {
  const ExampleTable user = MakeExampleTable("user", 2, {0, 1, -1});
  EXPECT_THAT(CompareTables(*Save(1, user), 0, *Save(2, user), 0),
              IsOkAndHolds(""));
  const ExampleTable none = MakeExampleTable("user", 2, {});
  EXPECT_THAT(CompareTables(*Save(3, none), 0, *Save(4, none), 0),
              IsOkAndHolds(""));
}

TEST_F(TableDiffTest, RowsOfOne_AreCounted) {
  const auto a = Save(1, MakeExampleTable("user", 2, {0, 1, -1, 12, 13}));
  const auto b = Save(2, MakeExampleTable("user", 2, {1, 12, 99}));
  const auto differs = CompareTables(*a, 0, *b, 0);
  ASSERT_THAT(differs, IsOk());
  EXPECT_THAT(*differs,
              AllOf(HasSubstr("3 rows only in train/ckpt-000000000001, 1 only "
                              "in train/ckpt-000000000002"),
                    HasSubstr("0 of 2 in both differ; largest difference 0")));
}

TEST_F(TableDiffTest, RowsThatDiffer_AreCountedWithTheLargestDifference) {
  const ExampleTable user = MakeExampleTable("user", 2, {0, 1, -1});
  const auto differs = CompareTables(*Save(1, user), 0, *Save(2, user, 4), 0);
  ASSERT_THAT(differs, IsOk());
  EXPECT_THAT(*differs,
              HasSubstr("3 of 3 in both differ; largest difference 3"));
}

TEST_F(TableDiffTest, ManyBlocksOfRows_AreComparedToTheLastRow) {
  std::vector<int64_t> ids;
  for (int64_t id = 0; id < 30000; ++id) ids.push_back(id);
  const auto a = Save(1, MakeExampleTable("user", 4, ids));
  ids.pop_back();
  const auto b = Save(2, MakeExampleTable("user", 4, ids));
  const auto differs = CompareTables(*a, 0, *b, 0);
  ASSERT_THAT(differs, IsOk());
  EXPECT_THAT(*differs,
              AllOf(HasSubstr("1 rows only in train/ckpt-000000000001"),
                    HasSubstr("0 of 29999 in both differ")));
}

TEST_F(TableDiffTest, AnotherDim_IsSaid) {
  const auto a = Save(1, MakeExampleTable("user", 2, {0}));
  const auto b = Save(2, MakeExampleTable("user", 3, {0}));
  EXPECT_THAT(CompareTables(*a, 0, *b, 0),
              IsOkAndHolds(HasSubstr("rows of 2 with slots [accumulator] and "
                                     "rows of 3")));
}

}  // namespace
}  // namespace muster
