#include <vector>

#include "common/cluster/placement_strategy.h"
#include "common/tensor/blocks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/cluster/tensors.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

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

TEST(GreedyPlacementTest, PlacesPieces) {
  PlacementSpec spec;
  spec.set_strategy("greedy");
  spec.mutable_partition()->mutable_fixed()->set_parts(2);
  constexpr int64_t kBlock = kBlockElements;
  const auto placement = PlaceTensors(
      {MakeTensor("a", {2 * kBlock + 1}), MakeTensor("b", {2 * kBlock})}, 2,
      spec);
  ASSERT_THAT(placement, IsOk());
  EXPECT_THAT(*placement,
              ElementsAre(ElementsAre(TensorExtent{0, 0, kBlock},
                                      TensorExtent{1, kBlock, kBlock + 1}),
                          ElementsAre(TensorExtent{0, 0, kBlock},
                                      TensorExtent{1, kBlock, kBlock})));
}

}  // namespace
}  // namespace muster
