#include "worker/executor/lane_schedule.h"

#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/backend/no_primitive.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kBytes = 64;

MATCHER_P2(After, lane, instruction, "") {
  return arg.lane == lane && arg.instruction == instruction;
}

// A plan of two devices whose instructions copy.
class LaneScheduleTest : public testing::Test {
 protected:
  LaneScheduleTest() { plan_.num_devices = 2; }

  // A buffer in the arena of `device`, in the memory that starts at `offset`.
  int Arena(int device, int64_t offset) {
    return Add(BufferSpace::kArena, device, 0, offset);
  }
  int Parameter(int index) {
    return Add(BufferSpace::kParameter, 0, index, -1);
  }
  int Input() { return Add(BufferSpace::kInput, 0, 0, -1); }
  int Gradient(int index) { return Add(BufferSpace::kGradient, 0, index, -1); }

  // Half of each of two rows of a gradient.
  int HalfRows(int device, int half) {
    const int part = Add(BufferSpace::kGradient, device, 0, -1);
    plan_.buffers[part].offset_bytes = half * kBytes / 2;
    plan_.buffers[part].runs = 2;
    plan_.buffers[part].stride_bytes = kBytes;
    return part;
  }

  // The `index`-th part of a buffer in an arena.
  int Part(int whole, int index) {
    const int part = Arena(plan_.buffers[whole].device,
                           placement_.offsets[whole] + index * kBytes);
    plan_.buffers[part].whole = whole;
    plan_.buffers[whole].size_bytes = (index + 1) * kBytes;
    return part;
  }

  void Copy(int device, int src, int dst, Operand role = Operand::kDst) {
    Instruction instruction;
    instruction.device = device;
    instruction.operands = {{Operand::kSrc, 0, src}, {role, 0, dst}};
    plan_.instructions.push_back(std::move(instruction));
  }
  LaneSchedule Schedule() const { return ScheduleLanes(plan_, placement_); }

  // Device 0 has memory of its own.
  void GiveMemory() {
    plan_.has_own_memory = {true, false};
    plan_.has_host_arena = true;
  }
  void Compute(int device, int src, int dst) {
    Copy(device, src, dst);
    plan_.instructions.back().primitive = std::make_unique<NoPrimitive>();
  }

 private:
  int Add(BufferSpace space, int device, int index, int64_t offset) {
    PlanBuffer buffer;
    buffer.space = space;
    buffer.device = device;
    buffer.index = index;
    buffer.size_bytes = kBytes;
    plan_.buffers.push_back(buffer);
    placement_.offsets.push_back(offset);
    return static_cast<int>(plan_.buffers.size()) - 1;
  }

  ExecutionPlan plan_;
  BufferPlacement placement_;
};

TEST_F(LaneScheduleTest, ALaneHasItsDevicesInstructionsInOrder) {
  const int input = Input();
  Copy(1, input, Arena(1, 0));
  Copy(0, input, Arena(0, 0));
  Copy(1, input, Arena(1, kBytes));
  const LaneSchedule schedule = Schedule();
  EXPECT_THAT(schedule.lanes, ElementsAre(ElementsAre(1), ElementsAre(0, 2)));
  EXPECT_THAT(schedule.waits, ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
}

TEST_F(LaneScheduleTest, ATransferWaitsForWhatItReads) {
  const int made = Arena(0, 0);
  Copy(0, Input(), made);
  Copy(0, made, Arena(0, kBytes));
  Copy(1, made, Arena(1, 0));
  EXPECT_THAT(Schedule().waits[2], ElementsAre(After(0, 0)));
}

TEST_F(LaneScheduleTest, NobodyWritesOverWhatIsStillRead) {
  const int made = Arena(0, 0);
  Copy(0, Input(), made);
  Copy(1, made, Arena(1, 0));
  Copy(0, Input(), Arena(0, kBytes));
  Copy(0, Input(), Arena(0, 0));
  const LaneSchedule schedule = Schedule();
  EXPECT_THAT(schedule.waits[2], IsEmpty());
  EXPECT_THAT(schedule.waits[3], ElementsAre(After(1, 1)));
}

TEST_F(LaneScheduleTest, WaitsOnceForWhatIsOver) {
  const int first = Arena(0, 0);
  const int second = Arena(0, kBytes);
  Copy(0, Input(), first);
  Copy(0, Input(), second);
  Copy(1, second, Arena(1, 0));
  Copy(1, first, Arena(1, kBytes));
  const LaneSchedule schedule = Schedule();
  EXPECT_THAT(schedule.waits[2], ElementsAre(After(0, 1)));
  EXPECT_THAT(schedule.waits[3], IsEmpty());
}

TEST_F(LaneScheduleTest, AParameterIsReadAfterItsFirstReaderHasAskedForIt) {
  const int parameter = Parameter(3);
  Copy(0, parameter, Arena(0, 0));
  Copy(1, parameter, Arena(1, 0));
  Copy(0, Parameter(4), Arena(0, kBytes));
  const LaneSchedule schedule = Schedule();
  EXPECT_THAT(schedule.waits[1], ElementsAre(After(0, 0)));
  EXPECT_THAT(schedule.waits[2], IsEmpty());
}

TEST_F(LaneScheduleTest, OtherColumnsOfTheSameRowsAreWrittenSideBySide) {
  Copy(0, Input(), HalfRows(0, 0));
  Copy(1, Input(), HalfRows(1, 1));
  Copy(0, Input(), HalfRows(0, 1));
  const LaneSchedule schedule = Schedule();
  EXPECT_THAT(schedule.waits[1], IsEmpty());
  EXPECT_THAT(schedule.waits[2], ElementsAre(After(1, 1)));
}

TEST_F(LaneScheduleTest, WhatAddsToAGradientWaitsForWhoWroteIt) {
  const int gradient = Gradient(2);
  Copy(0, Input(), gradient);
  Copy(1, Input(), gradient, Operand::kDiffWeights);
  EXPECT_THAT(Schedule().waits[1], ElementsAre(After(0, 0)));
}

TEST_F(LaneScheduleTest, WhoReadsAWholeWaitsForItsParts) {
  const int whole = Arena(0, 0);
  Copy(1, Input(), Part(whole, 0));
  Copy(1, Input(), Part(whole, 1));
  Copy(0, whole, Arena(0, 4 * kBytes));
  EXPECT_THAT(Schedule().waits[2], ElementsAre(After(1, 1)));
}

TEST_F(LaneScheduleTest, ReadersOfAPartOfWhatIsWrittenDoNotWaitForEachOther) {
  const int whole = Arena(0, 0);
  const int part = Part(whole, 0);
  Copy(0, Input(), whole);
  Copy(1, part, Arena(1, 0));
  Copy(0, part, Arena(0, 4 * kBytes));
  const LaneSchedule schedule = Schedule();
  EXPECT_THAT(schedule.waits[1], ElementsAre(After(0, 0)));
  EXPECT_THAT(schedule.waits[2], IsEmpty());
}

TEST_F(LaneScheduleTest, AStreamWaitsForWhatAnotherHasWritten) {
  GiveMemory();
  const int host = Arena(2, 0);
  const int in = Arena(0, 0);
  const int out = Arena(0, kBytes);
  Copy(0, host, in);
  Compute(0, in, out);
  Copy(0, out, Arena(2, kBytes));
  const LaneSchedule schedule = Schedule();
  EXPECT_THAT(schedule.stream_waits,
              ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(schedule.ends_late, ElementsAre(true, false, true));
}

TEST_F(LaneScheduleTest, AStreamWaitsForWhoStillReadsWhatItWritesOver) {
  GiveMemory();
  const int value = Arena(0, 0);
  Compute(0, Arena(0, kBytes), value);
  Copy(0, value, Arena(2, 0));
  Compute(0, Arena(0, kBytes), Arena(0, 0));
  Copy(0, Arena(2, kBytes), Arena(0, 0));
  const LaneSchedule schedule = Schedule();
  EXPECT_THAT(schedule.stream_waits[2], ElementsAre(1));
  EXPECT_THAT(schedule.stream_waits[3], ElementsAre(2, 1));
}

TEST_F(LaneScheduleTest, TheThreadWaitsForCopiesOfWhatItTouches) {
  GiveMemory();
  const int host = Arena(2, 0);
  Copy(0, Arena(0, 0), host);
  Copy(0, host, Gradient(0));
  Copy(0, host, Arena(0, kBytes));
  const LaneSchedule schedule = Schedule();
  EXPECT_THAT(schedule.stream_waits,
              ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(0)));
  EXPECT_THAT(schedule.ends_late, ElementsAre(true, false, true));
}

TEST_F(LaneScheduleTest, OtherLanesWaitForCopiesOnly) {
  GiveMemory();
  const int value = Arena(0, 0);
  const int host = Arena(2, 0);
  Compute(0, Arena(0, kBytes), value);
  Copy(0, value, host);
  Copy(1, host, Arena(1, 0));
  const LaneSchedule schedule = Schedule();
  EXPECT_THAT(schedule.waits[2], ElementsAre(After(0, 1)));
  EXPECT_THAT(schedule.stream_waits[2], IsEmpty());
}

}  // namespace
}  // namespace muster
