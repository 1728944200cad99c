#include <vector>

#include "common/cluster/placement_strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/cluster/tensors.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

TEST(GreedyPlacementTest, GivesEachTensorToTheLeastLoadedTask) {
  PlacementSpec spec;
  spec.set_strategy("greedy");
  // Loads after each: (10, 0) (10, 4) (10, 7) (10, 10): a tie goes to task 0.
  const std::vector<TensorDef> tensors = {
      MakeTensor("a", {10}), MakeTensor("b", {4}), MakeTensor("c", {3}),
      MakeTensor("d", {3}), MakeTensor("e", {1})};
  EXPECT_THAT(PlaceOnTasks(tensors, 2, spec),
              IsOkAndHolds(std::vector<int>{0, 1, 1, 1, 0}));
}

TEST(GreedyPlacementTest, KeepsTheLargestTensorOfTheCnnAlone) {
  PlacementSpec spec;
  spec.set_strategy("greedy");
  EXPECT_THAT(PlaceOnTasks(MnistCnnTensors(), 2, spec),
              IsOkAndHolds(std::vector<int>{0, 1, 1, 0, 0, 1, 1, 1}));
}

}  // namespace
}  // namespace muster
