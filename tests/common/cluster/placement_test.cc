#include "common/cluster/placement.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/cluster/tensors.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kBlock = 4;

// Checks the extents of one tensor of ten elements on two ps tasks.
absl::Status Check(const std::vector<TensorExtent>& extents) {
  return CheckPlacement({MakeTensor("a", {2, 5})}, {extents}, /*num_ps=*/2,
                        kBlock);
}

TEST(PlacementTest, PlaceWholeGivesOneExtentATensor) {
  const std::vector<TensorDef> tensors = {MakeTensor("a", {2, 5}),
                                          MakeTensor("scalar", {}),
                                          MakeTensor("empty", {0, 3})};
  const auto placement = PlaceWhole(tensors, {1, 0, 1});
  ASSERT_THAT(placement, IsOk());
  EXPECT_THAT(*placement, ElementsAre(ElementsAre(TensorExtent{1, 0, 10}),
                                      ElementsAre(TensorExtent{0, 0, 1}),
                                      ElementsAre(TensorExtent{1, 0, 0})));
  EXPECT_THAT(CheckPlacement(tensors, *placement, 2, kBlock), IsOk());
}

TEST(PlacementTest, RefusesAnotherNumberOfTensors) {
  const std::vector<TensorDef> tensors = {MakeTensor("a", {2, 5})};
  EXPECT_EQ(PlaceWhole(tensors, {0, 1}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckPlacement(tensors, {}, 2, kBlock).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(PlacementTest, TakesPiecesCutAtBlockBorders) {
  EXPECT_THAT(Check({{1, 0, 4}, {0, 4, 6}}), IsOk());
  EXPECT_THAT(Check({{0, 0, 8}, {0, 8, 2}}), IsOk());
}

TEST(PlacementTest, RefusesACutInsideABlock) {
  EXPECT_THAT(Check({{0, 0, 5}, {1, 5, 5}}).message(),
              HasSubstr("place 'a': extent [0, + 5) on ps task 0; wanted its "
                        "end at a multiple of 4"));
}

TEST(PlacementTest, RefusesGapsOverlapsAndWrongEnds) {
  for (const auto& extents :
       std::vector<std::vector<TensorExtent>>{
           {},
           {{0, 0, 4}},                        // too short
           {{0, 0, 12}},                       // too long
           {{0, 0, 4}, {1, 8, 2}},             // a gap
           {{0, 0, 8}, {1, 4, 6}},             // an overlap
           {{0, 4, 6}, {1, 0, 4}},             // descending
           {{0, 0, 0}, {1, 0, 10}},            // an empty extent
           {{0, 0, 10}, {1, 10, INT64_MAX}}})  // would overflow
  {
    EXPECT_EQ(Check(extents).code(), absl::StatusCode::kInvalidArgument)
        << extents.size() << " extents";
  }
}

TEST(PlacementTest, AnEmptyTensorHasOneExtent) {
  const TensorDef empty = MakeTensor("empty", {0});
  for (const auto& extents : std::vector<std::vector<TensorExtent>>{
           {}, {{0, 0, 1}}, {{0, 0, -1}}, {{0, 0, 0}, {1, 0, 0}}}) {
    EXPECT_EQ(CheckPlacement({empty}, {extents}, 2, kBlock).code(),
              absl::StatusCode::kInvalidArgument)
        << extents.size() << " extents";
  }
}

TEST(PlacementTest, RefusesATaskThatIsNotThere) {
  EXPECT_THAT(Check({{2, 0, 10}}).message(), HasSubstr("in [0, 2)"));
  EXPECT_THAT(Check({{-1, 0, 10}}).message(), HasSubstr("in [0, 2)"));
}

}  // namespace
}  // namespace muster
