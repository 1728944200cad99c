#include "worker/client/transfer_plan.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/placement.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TensorDef MakeTensor(const std::string& name, std::vector<int64_t> shape,
                     DataType dtype = FLOAT32) {
  TensorDef tensor;
  tensor.set_name(name);
  for (const int64_t dim : shape) tensor.add_shape(dim);
  tensor.set_dtype(dtype);
  return tensor;
}

// The plan of whole tensors on these ps tasks.
absl::StatusOr<TransferPlan> PlanWhole(
    const std::vector<TensorDef>& tensors, const std::vector<int>& tasks,
    const std::vector<int64_t>& max_part_bytes) {
  ASSIGN_OR_RETURN(const Placement placement, PlaceWhole(tensors, tasks));
  return PlanTransfer(tensors, placement, max_part_bytes);
}

TEST(TransferPlanTest, FusesSmallTensors) {
  const absl::StatusOr<TransferPlan> plan =
      PlanWhole({MakeTensor("w", {5, 5, 1, 32}), MakeTensor("b", {32})}, {0, 0},
                {kMaxPartBytes, kMaxPartBytes});
  ASSERT_THAT(plan, IsOk());
  ASSERT_EQ(plan->parts[0].size(), 1);
  EXPECT_EQ(plan->parts[0][0].slices.size(), 2);
  EXPECT_EQ(plan->parts[0][0].bytes, (800 + 32) * 4);
  EXPECT_TRUE(plan->parts[1].empty());
}

// Small ones share a part with those of their kind, also with another between.
TEST(TransferPlanTest, FrozenTensorsHavePartsOfTheirOwn) {
  std::vector<TensorDef> tensors;
  for (const char* const name : {"a", "b", "c", "d", "e"}) {
    tensors.push_back(MakeTensor(name, {3}));
  }
  for (const int i : {0, 2, 4}) tensors[i].set_kind(FROZEN);
  const absl::StatusOr<TransferPlan> plan =
      PlanWhole(tensors, {0, 0, 0, 0, 1}, {kMaxPartBytes, kMaxPartBytes});
  ASSERT_THAT(plan, IsOk());
  ASSERT_EQ(plan->parts[0].size(), 2);
  EXPECT_EQ(plan->parts[0][0].slices[1].tensor, 2);
  EXPECT_FALSE(plan->parts[0][0].is_pushed());
  EXPECT_EQ(plan->parts[0][1].slices[1].tensor, 3);
  EXPECT_EQ(plan->parts[0][1].pushed_as, 0);
  EXPECT_EQ(plan->pushed_parts, std::vector<int>({1, 0}));
  EXPECT_EQ(plan->parts_of[3][0].part, 1);
}

TEST(TransferPlanTest, SplitsLargeTensorsBetweenBlocks) {
  const int64_t elements = 9 * kBlockElements + 5;
  const absl::StatusOr<TransferPlan> plan =
      PlanWhole({MakeTensor("small", {3}), MakeTensor("large", {elements})},
                {0, 0}, {kMaxPartBytes});
  ASSERT_THAT(plan, IsOk());
  int64_t next = 0;
  for (const PlannedPart& part : plan->parts[0]) {
    int64_t bytes = 0;
    for (const PlannedSlice& slice : part.slices) {
      bytes += slice.length * 4;
      if (slice.tensor != 1) continue;
      EXPECT_EQ(slice.offset, next);
      EXPECT_EQ(slice.offset % kBlockElements, 0);
      next += slice.length;
    }
    EXPECT_EQ(part.bytes, bytes);
    EXPECT_LE(bytes, kMaxPartBytes);
  }
  EXPECT_EQ(next, elements);
  // small + 3 blocks, 4 blocks, 2 blocks and 5 elements.
  EXPECT_EQ(plan->parts[0].size(), 3);
  EXPECT_THAT(plan->parts_of[0], SizeIs(1));
  ASSERT_THAT(plan->parts_of[1], SizeIs(3));
  EXPECT_EQ(plan->parts_of[1][2].shard, 0);
  EXPECT_EQ(plan->parts_of[1][2].part, 2);
}

TEST(TransferPlanTest, MakesMorePartsIfTheyAreToBeSmall) {
  const absl::StatusOr<TransferPlan> plan = PlanWhole(
      {MakeTensor("a", {3}), MakeTensor("b", {1}), MakeTensor("c", {3}),
       MakeTensor("large", {kBlockElements + 5})},
      {0, 0, 0, 0}, /*max_part_bytes=*/{16});
  ASSERT_THAT(plan, IsOk());
  // a and b, c, a block, the rest.
  ASSERT_EQ(plan->parts[0].size(), 4);
  EXPECT_EQ(plan->parts[0][0].slices.size(), 2);
  EXPECT_EQ(plan->parts[0][1].bytes, 12);
  EXPECT_EQ(plan->parts[0][2].slices[0].length, kBlockElements);
  EXPECT_EQ(plan->parts[0][3].slices[0].length, 5);
}

TEST(TransferPlanTest, EachShardHasPartsOfItsOwnSize) {
  const TensorDef large = MakeTensor("large", {4 * kBlockElements});
  const absl::StatusOr<TransferPlan> plan =
      PlanWhole({large, large}, {0, 1}, {kMaxPartBytes, kMaxPartBytes / 2});
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->parts[0], SizeIs(1));
  EXPECT_THAT(plan->parts[1], SizeIs(2));
}

TEST(TransferPlanTest, SmallPartsBecomeLargeOnesWhereTheyWouldBeTooMany) {
  const auto plan_of = [](int64_t blocks) {
    return PlanWhole({MakeTensor("huge", {blocks * kBlockElements}),
                      MakeTensor("small", {4 * kBlockElements})},
                     {0, 1}, {kMaxPartBytes / 4, kMaxPartBytes / 4});
  };
  absl::StatusOr<TransferPlan> plan = plan_of(kMaxStepParts);
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->parts[0], SizeIs(kMaxStepParts));
  plan = plan_of(kMaxStepParts + 1);
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->parts[0], SizeIs(kMaxStepParts / 4 + 1));
  EXPECT_THAT(plan->parts[1], SizeIs(4));
}

TEST(TransferPlanTest, DoublesHaveFewerBlocksInAPart) {
  const absl::StatusOr<TransferPlan> plan = PlanWhole(
      {MakeTensor("w", {4 * kBlockElements}, FLOAT64)}, {0}, {kMaxPartBytes});
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->parts[0].size(), 2);
}

TEST(TransferPlanTest, ManyLongNamesStayUnderTheHeaderLimit) {
  std::vector<TensorDef> tensors;
  for (int i = 0; i < 1000; ++i) {
    tensors.push_back(MakeTensor(absl::StrCat(std::string(250, 'n'), i), {1}));
  }
  const absl::StatusOr<TransferPlan> plan =
      PlanWhole(tensors, std::vector<int>(1000, 0), {kMaxPartBytes});
  ASSERT_THAT(plan, IsOk());
  EXPECT_GT(plan->parts[0].size(), 4);
  for (const PlannedPart& part : plan->parts[0]) {
    EXPECT_LE(part.slices.size() * 290, kMaxHeaderBytes);
  }
}

TEST(TransferPlanTest, EachShardHasThePartsOfItsPieces) {
  constexpr int64_t kElements = 6 * kBlockElements + 5;
  const absl::StatusOr<TransferPlan> plan =
      PlanTransfer({MakeTensor("small", {3}), MakeTensor("cut", {kElements})},
                   {{{1, 0, 3}},
                    {{0, 0, kBlockElements},
                     {1, kBlockElements, 4 * kBlockElements},
                     {0, 5 * kBlockElements, kElements - 5 * kBlockElements}}},
                   {kMaxPartBytes, kMaxPartBytes});
  ASSERT_THAT(plan, IsOk());
  const auto slices = [&](int shard, int part) {
    std::vector<std::vector<int64_t>> found;
    for (const PlannedSlice& slice : plan->parts[shard][part].slices) {
      found.push_back({slice.tensor, slice.offset, slice.length});
    }
    return found;
  };
  using Slices = std::vector<std::vector<int64_t>>;
  // Two pieces on one shard share a part.
  ASSERT_THAT(plan->parts[0], SizeIs(1));
  EXPECT_EQ(slices(0, 0),
            Slices({{1, 0, kBlockElements},
                    {1, 5 * kBlockElements, kBlockElements + 5}}));
  ASSERT_THAT(plan->parts[1], SizeIs(2));
  EXPECT_EQ(slices(1, 0),
            Slices({{0, 0, 3}, {1, kBlockElements, 3 * kBlockElements}}));
  EXPECT_EQ(slices(1, 1), Slices({{1, 4 * kBlockElements, kBlockElements}}));
  EXPECT_THAT(plan->parts_of[0], SizeIs(1));
  EXPECT_THAT(plan->parts_of[1], SizeIs(4));
}

TEST(TransferPlanTest, RefusesAPlacementThatDoesNotExist) {
  EXPECT_THAT(
      PlanWhole({MakeTensor("w", {1})}, {2}, {kMaxPartBytes, kMaxPartBytes}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("place 'w': extent [0, + 1) on ps task 2; wanted a "
                         "task in [0, 2)")));
  EXPECT_THAT(PlanTransfer({MakeTensor("w", {9})}, {{{0, 0, 5}, {0, 5, 4}}},
                           {kMaxPartBytes}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("wanted its end at a multiple of 65536")));
}

TEST(TransferPlanTest, RefusesATypeWithoutASize) {
  EXPECT_THAT(PlanWhole({MakeTensor("w", {1}, DATA_TYPE_UNSPECIFIED)}, {0},
                        {kMaxPartBytes}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'w'")));
}

}  // namespace
}  // namespace muster
