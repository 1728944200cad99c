#include "worker/model/memory_bridges.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/backend/no_primitive.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kBytes = 64;

// Devices 0 and 1 have memory of their own, device 2 computes in the host's.
class MemoryBridgesTest : public testing::Test {
 protected:
  MemoryBridgesTest() {
    plan_.num_devices = 3;
    plan_.loss_buffer = Add("loss", BufferSpace::kArena, 2);
    plan_.buffers[plan_.loss_buffer].live_at_end = true;
  }

  int Add(const std::string& name, BufferSpace space, int device) {
    PlanBuffer buffer;
    buffer.space = space;
    buffer.device = device;
    buffer.size_bytes = kBytes;
    plan_.buffers.push_back(buffer);
    const int number = static_cast<int>(plan_.buffers.size()) - 1;
    names_[number] = name;
    return number;
  }
  int AddValue(const std::string& name, int device) {
    return Add(name, BufferSpace::kArena, device);
  }
  // The `index`-th half of a buffer, in its memory.
  int AddHalf(const std::string& name, int whole, int index) {
    const int half =
        Add(name, plan_.buffers[whole].space, plan_.buffers[whole].device);
    plan_.buffers[half].whole = whole;
    plan_.buffers[half].size_bytes = kBytes / 2;
    plan_.buffers[half].offset_bytes = index * kBytes / 2;
    return half;
  }
  // Half of each of two rows.
  int AddColumns(const std::string& name, BufferSpace space, int device) {
    const int columns = Add(name, space, device);
    plan_.buffers[columns].runs = 2;
    plan_.buffers[columns].stride_bytes = kBytes;
    return columns;
  }

  void Compute(int device, const std::vector<BoundOperand>& operands) {
    Transfer(device, operands);
    plan_.instructions.back().primitive = std::make_unique<NoPrimitive>();
  }
  void Compute(int device, int src, int dst) {
    Compute(device, {{Operand::kSrc, 0, src}, {Operand::kDst, 0, dst}});
  }
  void Transfer(int device, int src, int dst) {
    Transfer(device, {{Operand::kSrc, 0, src}, {Operand::kDst, 0, dst}});
  }

  // "0: x -> x@1" for each; a copy has its source's name, "new" is none, and
  // where it lies.
  std::vector<std::string> Build() {
    BridgeMemories({true, true, false}, &plan_);
    std::vector<std::string> lines;
    for (const Instruction& instruction : plan_.instructions) {
      std::vector<std::string> buffers;
      for (const BoundOperand& bound : instruction.operands) {
        buffers.push_back(NameOf(instruction, bound.buffer));
      }
      lines.push_back(absl::StrCat(
          instruction.device, instruction.is_transfer() ? ": " : " computes ",
          absl::StrJoin(buffers, " -> ")));
    }
    return lines;
  }

  ExecutionPlan plan_;

 private:
  void Transfer(int device, const std::vector<BoundOperand>& operands) {
    Instruction instruction;
    instruction.device = device;
    instruction.operands = operands;
    plan_.instructions.push_back(std::move(instruction));
  }

  // Those of new buffers are found when they are first written.
  std::string NameOf(const Instruction& instruction, int buffer) {
    std::string& name = names_[buffer];
    if (!name.empty()) return name;
    const int device = plan_.buffers[buffer].device;
    const int whole = plan_.buffers[buffer].whole;
    name = absl::StrCat(
        whole >= 0
            ? absl::StrCat("part of ", names_[whole])
            : absl::StrCat(
                  instruction.is_transfer()
                      ? names_[instruction.operands.front().buffer]
                      : "new",
                  "@",
                  device == plan_.num_devices ? "host" : absl::StrCat(device)));
    return name;
  }

  std::map<int, std::string> names_;
};

TEST_F(MemoryBridgesTest, WhatIsHandedOverComesToTheHostWhenItIsMade) {
  const int x = AddValue("x", 0);
  const int y = AddValue("y", 0);
  const int z = AddValue("z", 1);
  Compute(0, x, y);
  Compute(0, y, AddValue("w", 0));
  Transfer(1, y, z);
  Transfer(2, y, AddValue("h", 2));
  EXPECT_THAT(Build(),
              ElementsAre("0 computes x -> y", "0: y -> y@host", "0: y -> h",
                          "0 computes y -> w", "1: y@host -> z"));
  EXPECT_TRUE(plan_.has_host_arena);
}

TEST_F(MemoryBridgesTest, OneDeviceCopiesThroughTheHostToo) {
  const int parts = AddValue("parts", 0);
  const int half = AddHalf("half", parts, 1);
  Compute(0, AddValue("x", 0), parts);
  Transfer(0, half, AddValue("copy", 0));
  EXPECT_THAT(Build(),
              ElementsAre("0 computes x -> parts", "0: half -> half@host",
                          "0: half@host -> copy"));
}

TEST_F(MemoryBridgesTest, APartOfAWholeIsFetchedWhenTheWholeIsThere) {
  const int whole = AddValue("whole", 0);
  Compute(0, AddValue("x", 0), AddHalf("a", whole, 0));
  Compute(0, AddValue("y", 0), AddHalf("b", whole, 1));
  Compute(0, AddValue("z", 0), AddValue("w", 0));
  Transfer(2, whole, AddValue("h", 2));
  EXPECT_THAT(Build(), ElementsAre("0 computes x -> a", "0 computes y -> b",
                                   "0: whole -> h", "0 computes z -> w"));
}

TEST_F(MemoryBridgesTest, BatchAndParametersAreCopiedOnceBeforeTheyAreRead) {
  const int input = Add("input", BufferSpace::kInput, 0);
  const int half = AddHalf("half", input, 1);
  const int weights = Add("weights", BufferSpace::kParameter, 0);
  const int y = AddValue("y", 0);
  Compute(0, {{Operand::kSrc, 0, half}, {Operand::kWeights, 0, weights}});
  Compute(0, {{Operand::kSrc, 0, input}, {Operand::kWeights, 0, weights}});
  Compute(2, {{Operand::kWeights, 0, weights}, {Operand::kDst, 0, y}});
  EXPECT_THAT(Build(),
              ElementsAre("0: input -> input@0", "0: weights -> weights@0",
                          "0 computes part of input@0 -> weights@0",
                          "0 computes input@0 -> weights@0",
                          "2 computes weights -> y"));
}

TEST_F(MemoryBridgesTest, StridedPartsMeetADeviceWithoutGaps) {
  const int columns = AddColumns("columns", BufferSpace::kParameter, 0);
  const int gradient = AddColumns("gradient", BufferSpace::kGradient, 0);
  const int part = AddValue("part", 1);
  const int made = AddValue("made", 1);
  Transfer(1, columns, part);
  Compute(1, part, made);
  Transfer(1, made, gradient);
  EXPECT_THAT(Build(),
              ElementsAre("1: columns -> columns@host",
                          "1: columns@host -> part", "1 computes part -> made",
                          "1: made -> made@host", "1: made@host -> gradient"));
}

TEST_F(MemoryBridgesTest, AGradientReturnsAfterItsLastWriter) {
  const int gradient = Add("gradient", BufferSpace::kGradient, 1);
  Compute(1, AddValue("x", 1), gradient);
  Compute(1, AddValue("y", 1), AddValue("z", 1));
  Compute(1, {{Operand::kDiffWeights, 0, gradient}});
  EXPECT_THAT(Build(), ElementsAre("1 computes x -> new@1", "1 computes y -> z",
                                   "1 computes new@1", "1: new@1 -> gradient"));
}

TEST_F(MemoryBridgesTest, WhatAddsToAGradientGetsWhatOthersHaveWritten) {
  const int part = Add("part", BufferSpace::kGradient, 0);
  const int gradient = Add("gradient", BufferSpace::kGradient, 1);
  Transfer(2, AddValue("x", 2), part);
  Compute(1, {{Operand::kDiffWeights, 0, gradient}});
  EXPECT_THAT(Build(), ElementsAre("2: x -> part", "1: gradient -> gradient@1",
                                   "1 computes gradient@1",
                                   "1: gradient@1 -> gradient"));
}

TEST_F(MemoryBridgesTest, ResultsAreTheHostsAndTheLossIsThereBeforeItsPenalty) {
  plan_.buffers[plan_.loss_buffer].device = 0;
  const int mean = AddValue("mean", 1);
  plan_.buffers[mean].live_at_end = true;
  plan_.moving_averages.resize(1);
  plan_.moving_averages[0].batch_buffer = mean;
  Compute(1, AddValue("x", 1), mean);
  Compute(0, {{Operand::kLoss, 0, plan_.loss_buffer}});
  Compute(0, {{Operand::kLoss, 0, plan_.loss_buffer}});
  EXPECT_THAT(Build(),
              ElementsAre("1 computes x -> mean", "0 computes loss",
                          "0: loss -> loss@host", "0 computes loss",
                          "0: loss -> loss@host", "1: mean -> mean@host"));
  EXPECT_NE(plan_.loss_buffer, plan_.forward_loss_buffer);
  for (const int result : {plan_.loss_buffer, plan_.forward_loss_buffer,
                           plan_.moving_averages[0].batch_buffer}) {
    EXPECT_TRUE(plan_.buffers[result].live_at_end);
    EXPECT_EQ(plan_.MemoryOf(result), ExecutionPlan::kHostMemory);
  }
  EXPECT_FALSE(plan_.buffers[mean].live_at_end);
}

TEST_F(MemoryBridgesTest, ALossToWhichNothingIsAddedIsFetchedOnce) {
  plan_.buffers[plan_.loss_buffer].device = 0;
  Compute(0, {{Operand::kLoss, 0, plan_.loss_buffer}});
  Compute(0, AddValue("x", 0), AddValue("y", 0));
  EXPECT_THAT(Build(), ElementsAre("0 computes loss", "0: loss -> loss@host",
                                   "0 computes x -> y"));
  EXPECT_EQ(plan_.loss_buffer, plan_.forward_loss_buffer);
}

TEST_F(MemoryBridgesTest, TheHostsDevicesCopyTheLossIfAPenaltyAddsToIt) {
  Compute(2, {{Operand::kLoss, 0, plan_.loss_buffer}});
  Compute(2, {{Operand::kLoss, 0, plan_.loss_buffer}});
  const int loss = plan_.loss_buffer;
  EXPECT_THAT(Build(), ElementsAre("2 computes loss", "2: loss -> loss@host",
                                   "2 computes loss"));
  EXPECT_EQ(plan_.loss_buffer, loss);
  EXPECT_NE(plan_.forward_loss_buffer, loss);
}

}  // namespace
}  // namespace muster
