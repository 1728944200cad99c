#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/placement_strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/cluster/tensors.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

PlacementSpec Random(int64_t seed) {
  PlacementSpec spec;
  spec.set_strategy("random");
  spec.set_seed(seed);
  return spec;
}

std::vector<int> Tasks(int64_t seed) {
  std::vector<TensorDef> tensors;
  for (int i = 0; i < 300; ++i) {
    tensors.push_back(MakeTensor(absl::StrCat("t", i), {1}));
  }
  return PlaceOnTasks(tensors, 3, Random(seed)).value();
}

TEST(RandomPlacementTest, ASeedIsAPlacement) {
  EXPECT_EQ(Tasks(1), Tasks(1));
  EXPECT_NE(Tasks(1), Tasks(2));
  EXPECT_NE(Tasks(0), Tasks(-1));
}

TEST(RandomPlacementTest, EveryPsTaskGetsAboutItsShare) {
  std::vector<int> count(3, 0);
  for (const int task : Tasks(4)) ++count[task];
  for (const int tensors : count) {
    EXPECT_GT(tensors, 75);
    EXPECT_LT(tensors, 125);
  }
}

TEST(RandomPlacementTest, PlacesPieces) {
  PlacementSpec spec = Random(1);
  spec.mutable_partition()->mutable_fixed()->set_parts(49);
  const auto placement = PlaceTensors(MnistCnnTensors(), 2, spec);
  ASSERT_THAT(placement, IsOk());
  std::set<int> tasks;
  for (const TensorExtent& extent : (*placement)[4]) tasks.insert(extent.ps);
  EXPECT_EQ(tasks, std::set<int>({0, 1}));
}

TEST(RandomPlacementTest, OthersHaveNoSeed) {
  PlacementSpec spec = Random(1);
  spec.set_strategy("greedy");
  EXPECT_THAT(CreatePlacementStrategy(spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("placement.seed is for the strategy")));
}

}  // namespace
}  // namespace muster
