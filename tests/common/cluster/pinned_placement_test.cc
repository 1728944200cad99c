#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/cluster/placement_strategy.h"
#include "common/tensor/blocks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/cluster/tensors.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

PlacementSpec Pinned(const std::string& pattern, int ps_task) {
  PlacementSpec spec;
  spec.set_strategy("pinned");
  PinSpec* pin = spec.add_pin();
  pin->set_pattern(pattern);
  pin->set_ps_task(ps_task);
  return spec;
}

TEST(PinnedPlacementTest, PinsWholeNamesAndPlacesTheRestByTheFallback) {
  EXPECT_THAT(PlaceOnTasks(MnistCnnTensors(), 3, Pinned("conv[12]/.*", 2)),
              IsOkAndHolds(std::vector<int>{2, 2, 2, 2, 0, 1, 2, 0}));
}

TEST(PinnedPlacementTest, APatternThatMatchesNothingIsRefusedByName) {
  // It matches a part of names only.
  EXPECT_THAT(
      PlaceOnTasks(MnistCnnTensors(), 2, Pinned("dense", 1)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("placement.pin.pattern 'dense' matches no whole name; "
                         "did you mean 'dense1/.*'? "
                         "there are: conv1/weights, conv1/bias, ")));
  EXPECT_THAT(PlaceOnTasks(MnistCnnTensors(), 2, Pinned("conv1/weight", 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("did you mean 'conv1/weights'?")));
}

TEST(PinnedPlacementTest, FindsAWholeMatchBehindAShorterAlternative) {
  EXPECT_THAT(PlaceOnTasks({MakeTensor("ab", {1})}, 2, Pinned("a|ab", 1)),
              IsOkAndHolds(std::vector<int>{1}));
}

TEST(PinnedPlacementTest, TheFirstMatchDecides) {
  PlacementSpec spec = Pinned("conv1/bias", 1);
  PinSpec* pin = spec.add_pin();
  pin->set_pattern(".*");
  pin->set_ps_task(0);
  EXPECT_THAT(PlaceOnTasks(MnistCnnTensors(), 2, spec),
              IsOkAndHolds(std::vector<int>{0, 1, 0, 0, 0, 0, 0, 0}));
}

TEST(PinnedPlacementTest, UsesTheNamedFallback) {
  PlacementSpec spec = Pinned("conv.*", 1);
  spec.set_fallback("greedy");
  EXPECT_THAT(PlaceOnTasks(MnistCnnTensors(), 2, spec),
              IsOkAndHolds(std::vector<int>{1, 1, 1, 1, 0, 1, 1, 1}));
}

TEST(PinnedPlacementTest, KeepsWhatIsPinnedWholeAndCutsTheRest) {
  constexpr int64_t kBlock = kBlockElements;
  const std::vector<TensorDef> tensors = {MakeTensor("pinned", {4 * kBlock}),
                                          MakeTensor("large", {4 * kBlock})};
  EXPECT_THAT(PlaceTensors(tensors, 2, Pinned("pinned", 1)),
              IsOkAndHolds(Placement{
                  {{1, 0, 4 * kBlock}},
                  {{0, 0, 2 * kBlock}, {1, 2 * kBlock, 2 * kBlock}}}));
}

TEST(PinnedPlacementTest, TheFallbackHasTheSeed) {
  PlacementSpec spec = Pinned("conv1/bias", 1);
  spec.set_seed(3);
  EXPECT_THAT(PlaceOnTasks(MnistCnnTensors(), 2, spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("placement.fallback: placement.seed")));
  spec.set_fallback("random");
  EXPECT_THAT(PlaceOnTasks(MnistCnnTensors(), 2, spec), IsOk());
}

TEST(PinnedPlacementTest, RefusesBadSettings) {
  PlacementSpec no_pins;
  no_pins.set_strategy("pinned");
  PlacementSpec own_fallback = Pinned("a", 0);
  own_fallback.set_fallback("pinned");
  PlacementSpec bad_fallback = Pinned("a", 0);
  bad_fallback.set_fallback("gready");
  struct Case {
    PlacementSpec spec;
    const char* wanted;
  };
  const Case kCases[] = {
      {no_pins, "needs at least one pin"},
      {own_fallback, "must not be 'pinned' itself"},
      {bad_fallback, "placement.fallback: unknown placement strategy"},
      {Pinned("", 0), "is empty"},
      {Pinned("conv(", 0), "'conv('"},
      {Pinned("[z-a]", 0), "'[z-a]'"},
      {Pinned("(a){1000}", 0), "repeat counts are not supported"},
      {Pinned("(a)\\1", 0), "back references are not supported"},
      {Pinned(std::string(257, 'a'), 0), "has 257 characters"},
      {Pinned(std::string("a\0b", 3), 0), "holds a NUL"},
      {Pinned("a", -1), "ps_task must not be negative"},
      {Pinned("a", 2), "ps_task 2 is not in the cluster, which has 2 ps"},
  };
  for (const Case& c : kCases) {
    const auto tasks = PlaceOnTasks(MnistCnnTensors(), 2, c.spec);
    ASSERT_FALSE(tasks.ok()) << c.wanted;
    EXPECT_THAT(tasks.status().message(), HasSubstr(c.wanted));
  }
}

TEST(PinnedPlacementTest, EndsOnAPatternThatBacktracksWithoutLimit) {
  // In a backtracking matcher this takes 2^40 steps.
  const TensorDef tensor = MakeTensor(std::string(40, 'a') + "b", {1});
  EXPECT_THAT(PlaceOnTasks({tensor}, 2, Pinned("(a|a)*(a|a)*c", 1)),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
