#include "worker/model/buffer_placement.h"

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr int64_t kBytes = 256;

// Reads src, or diff_dst, and writes dst, or diff_src; may work in place.
class InPlacePrimitive : public Primitive {
 public:
  explicit InPlacePrimitive(Operand from, Operand to) {
    const MemoryLayout layout = MemoryLayout::RowMajor(FLOAT32, {kBytes / 4});
    Take(from, layout);
    Take(to, layout);
    AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& /*operands*/) override {
    return absl::OkStatus();
  }
};

ExecutionPlan PlanWith(int buffers) {
  ExecutionPlan plan;
  plan.buffers.resize(buffers);
  for (PlanBuffer& buffer : plan.buffers) buffer.size_bytes = kBytes;
  return plan;
}

void Add(ExecutionPlan* plan, int src, int dst) {
  Instruction instruction;
  instruction.primitive =
      std::make_unique<InPlacePrimitive>(Operand::kSrc, Operand::kDst);
  instruction.operands = {{Operand::kSrc, 0, src}, {Operand::kDst, 0, dst}};
  plan->instructions.push_back(std::move(instruction));
}

TEST(BufferPlacementTest, AChainInPlaceNeedsOneBuffer) {
  ExecutionPlan plan = PlanWith(4);
  Add(&plan, 0, 1);
  Add(&plan, 1, 2);
  Add(&plan, 2, 3);
  EXPECT_EQ(PlaceBuffers(plan).arena_bytes[0], kBytes);
}

TEST(BufferPlacementTest, KeepsASourceThatIsReadLater) {
  ExecutionPlan plan = PlanWith(3);
  Add(&plan, 0, 1);
  Add(&plan, 0, 2);
  const BufferPlacement placement = PlaceBuffers(plan);
  EXPECT_NE(placement.offsets[0], placement.offsets[1]);
  EXPECT_EQ(placement.offsets[0], placement.offsets[2]);
}

TEST(BufferPlacementTest, KeepsASourceThatIsReadAtTheEnd) {
  ExecutionPlan plan = PlanWith(2);
  plan.buffers[0].live_at_end = true;
  Add(&plan, 0, 1);
  EXPECT_EQ(PlaceBuffers(plan).arena_bytes[0], 2 * kBytes);
}

TEST(BufferPlacementTest, PartsLieInTheirWholeAndKeepItAlive) {
  ExecutionPlan plan = PlanWith(5);
  plan.buffers[0].size_bytes = 2 * kBytes;
  for (const int part : {1, 2}) {
    plan.buffers[part].whole = 0;
    plan.buffers[part].offset_bytes = (part - 1) * kBytes;
  }
  Add(&plan, 3, 1);
  Add(&plan, 1, 2);
  Add(&plan, 2, 4);
  const BufferPlacement placement = PlaceBuffers(plan);
  EXPECT_EQ(placement.offsets[1], placement.offsets[0]);
  EXPECT_EQ(placement.offsets[2], placement.offsets[0] + kBytes);
  // Nothing is made in place in a part.
  EXPECT_EQ(placement.arena_bytes[0], 3 * kBytes);
}

TEST(BufferPlacementTest, NeverWritesOverMemoryOfOthers) {
  ExecutionPlan plan = PlanWith(2);
  plan.buffers[0].space = BufferSpace::kInput;
  Add(&plan, 0, 1);
  const BufferPlacement placement = PlaceBuffers(plan);
  EXPECT_EQ(placement.offsets[0], -1);
  EXPECT_EQ(placement.arena_bytes[0], kBytes);
}

TEST(BufferPlacementTest, DoesNotWorkInPlaceOnASourceThatIsReadTwice) {
  ExecutionPlan plan = PlanWith(2);
  Add(&plan, 0, 1);
  plan.instructions[0].operands.push_back({Operand::kSrc, 1, 0});
  EXPECT_EQ(PlaceBuffers(plan).arena_bytes[0], 2 * kBytes);
}

TEST(BufferPlacementTest, BackwardTakesTheMemoryOfItsGradient) {
  ExecutionPlan plan = PlanWith(3);
  Instruction instruction;
  instruction.primitive =
      std::make_unique<InPlacePrimitive>(Operand::kDiffDst, Operand::kDiffSrc);
  instruction.operands = {{Operand::kDst, 0, 0},
                          {Operand::kDiffDst, 0, 1},
                          {Operand::kDiffSrc, 0, 2}};
  plan.instructions.push_back(std::move(instruction));
  const BufferPlacement placement = PlaceBuffers(plan);
  EXPECT_EQ(placement.offsets[1], placement.offsets[2]);
  EXPECT_NE(placement.offsets[0], placement.offsets[2]);
}

TEST(BufferPlacementTest, EachDeviceHasAnArena) {
  ExecutionPlan plan = PlanWith(3);
  plan.num_devices = 2;
  plan.buffers[1].device = 1;
  plan.buffers[2].device = 1;
  Instruction transfer;
  transfer.device = 1;
  transfer.operands = {{Operand::kSrc, 0, 0}, {Operand::kDst, 0, 1}};
  plan.instructions.push_back(std::move(transfer));
  Add(&plan, 1, 2);
  const BufferPlacement placement = PlaceBuffers(plan);
  EXPECT_EQ(placement.arena_bytes, std::vector<int64_t>({kBytes, kBytes}));
  EXPECT_EQ(placement.offsets, std::vector<int64_t>({0, 0, 0}));
}

}  // namespace
}  // namespace muster
