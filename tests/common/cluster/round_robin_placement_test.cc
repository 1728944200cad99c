#include <vector>

#include "common/cluster/placement_strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/cluster/tensors.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

TEST(RoundRobinPlacementTest, GoesByCreationOrderWhateverTheSizes) {
  PlacementSpec spec;
  spec.set_strategy("round_robin");
  EXPECT_THAT(PlaceOnTasks(MnistCnnTensors(), 3, spec),
              IsOkAndHolds(std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1}));
}

TEST(RoundRobinPlacementTest, LeavesTasksEmptyIfThereAreMoreThanTensors) {
  PlacementSpec spec;
  spec.set_strategy("round_robin");
  EXPECT_THAT(
      PlaceOnTasks({MakeTensor("a", {1}), MakeTensor("b", {1})}, 5, spec),
      IsOkAndHolds(std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace muster
