#include "common/cluster/placement_strategy.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/cluster/placement_table.h"
#include "common/tensor/blocks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/cluster/tensors.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Lt;

PlacementSpec Spec(const std::string& strategy) {
  PlacementSpec spec;
  spec.set_strategy(strategy);
  if (strategy == "pinned") {
    PinSpec* pin = spec.add_pin();
    pin->set_pattern(".*/bias");
    pin->set_ps_task(1);
  }
  return spec;
}

TEST(PlacementStrategyTest, EveryRegisteredNamePlaces) {
  ASSERT_THAT(PlacementRegistry::Names(),
              ElementsAre("greedy", "pinned", "random", "round_robin"));
  EXPECT_THAT(PlacementRegistry::Validate(), IsOk());
  const std::vector<TensorDef> tensors = MnistCnnTensors();
  for (const std::string& name : PlacementRegistry::Names()) {
    const auto tasks = PlaceOnTasks(tensors, 3, Spec(name));
    ASSERT_THAT(tasks, IsOk());
    EXPECT_EQ(tasks->size(), tensors.size());
    EXPECT_THAT(*tasks, Each(AllOf(Ge(0), Lt(3))));
    EXPECT_FALSE(PlacementRegistry::Find(name)->help.empty());
  }
}

TEST(PlacementStrategyTest, OneTaskTakesAll) {
  for (const char* name : {"greedy", "round_robin"}) {
    const auto tasks = PlaceOnTasks(MnistCnnTensors(), 1, Spec(name));
    ASSERT_THAT(tasks, IsOk());
    EXPECT_THAT(*tasks, Each(0));
  }
}

TEST(PlacementStrategyTest, NoTensorsAreNoTasks) {
  EXPECT_THAT(PlaceOnTasks({}, 2, Spec("greedy")),
              IsOkAndHolds(std::vector<int>()));
}

TEST(PlacementStrategyTest, TheDefaultIsRoundRobin) {
  const auto tasks = PlaceOnTasks(MnistCnnTensors(), 2, PlacementSpec());
  EXPECT_THAT(tasks, IsOkAndHolds(std::vector<int>{0, 1, 0, 1, 0, 1, 0, 1}));
}

TEST(PlacementStrategyTest, TheDefaultCutsWhatIsLarge) {
  // 49 blocks of dense1/weights, and all else in turn.
  const auto placement = PlaceTensors(MnistCnnTensors(), 2, PlacementSpec());
  ASSERT_THAT(placement, IsOk());
  constexpr int64_t kCut = 25 * kBlockElements;
  EXPECT_THAT((*placement)[4],
              ElementsAre(TensorExtent{1, 0, kCut},
                          TensorExtent{0, kCut, 24 * kBlockElements}));
  EXPECT_LT(ImbalanceRatio(MnistCnnTensors(), *placement, 2), 1.02);
}

TEST(PlacementStrategyTest, RefusesABadPartition) {
  PlacementSpec spec;
  spec.mutable_partition()->mutable_fixed()->set_parts(0);
  EXPECT_THAT(CreatePlacementStrategy(spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("partition.fixed.parts")));
  spec.mutable_partition()->mutable_fixed()->set_parts(50);
  EXPECT_THAT(
      PlaceTensors(MnistCnnTensors(), 2, spec),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("wanted at most 49, the blocks of 65536 elements")));
}

TEST(PlacementStrategyTest, OffersTheNearestName) {
  EXPECT_THAT(PlaceOnTasks({}, 2, Spec("gready")),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("did you mean 'greedy'?")));
}

TEST(PlacementStrategyTest, RefusesPinsOfAnotherStrategy) {
  PlacementSpec spec = Spec("pinned");
  spec.set_strategy("greedy");
  EXPECT_THAT(CreatePlacementStrategy(spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("for the strategy 'pinned'")));
}

TEST(PlacementStrategyTest, RefusesBadTensorsAndNoPs) {
  EXPECT_THAT(PlaceOnTasks(MnistCnnTensors(), 0, PlacementSpec()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(PlaceOnTasks({MakeTensor("a/b", {2, -1})}, 1, PlacementSpec()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("a/b"), HasSubstr("negative"))));
  TensorDef untyped = MakeTensor("c", {2});
  untyped.clear_dtype();
  EXPECT_THAT(TensorBytes(untyped),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("c")));
  EXPECT_THAT(TensorBytes(MakeTensor("d", {2, 3})), IsOkAndHolds(24));
}

}  // namespace
}  // namespace muster
