#include "worker/executor/step_segments.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kLarge = kSegmentEndBytes;
constexpr int64_t kSmall = kLarge / 4;

// A plan of instructions that do nothing, and its schedule; the first one makes
// the loss unless another is named.
class StepSegmentsTest : public testing::Test {
 protected:
  StepSegmentsTest() {
    plan_.buffers.resize(1);
    plan_.loss_buffer = 0;
  }
  void AddInstructions(int count) {
    plan_.instructions.resize(plan_.instructions.size() + count);
    schedule_.first_used_by.resize(plan_.instructions.size());
    schedule_.final_after.resize(plan_.instructions.size());
  }
  // Each reads a parameter of that size first.
  void AddReaders(const std::vector<int64_t>& sizes) {
    for (const int64_t size : sizes) {
      AddInstructions(1);
      schedule_.first_used_by.back() = {static_cast<int>(sizes_.size())};
      sizes_.push_back(size);
    }
  }
  void AddLoss() {
    AddInstructions(1);
    schedule_.loss_instruction = plan_.instructions.size() - 1;
  }
  void AddPenalty() {
    AddInstructions(1);
    BoundOperand loss;
    loss.buffer = plan_.loss_buffer;
    plan_.instructions.back().operands = {loss};
  }
  void AddGradient(int parameter) {
    AddInstructions(1);
    schedule_.final_after.back() = {parameter};
  }
  std::vector<Segment> Divide() {
    std::vector<Segment> segments = DivideStep(plan_, schedule_, sizes_);
    ExpectWhole(segments);
    return segments;
  }
  std::vector<size_t> Begins() {
    std::vector<size_t> begins;
    for (const Segment& segment : Divide()) begins.push_back(segment.begin);
    return begins;
  }

 private:
  // Every instruction is in one of them, in order, and none is empty.
  void ExpectWhole(const std::vector<Segment>& segments) {
    size_t next = 0;
    for (const Segment& segment : segments) {
      EXPECT_EQ(segment.begin, next);
      EXPECT_GT(segment.end, segment.begin);
      next = segment.end;
    }
    EXPECT_EQ(next, plan_.instructions.size());
  }

  ExecutionPlan plan_;
  StepSchedule schedule_;
  std::vector<int64_t> sizes_;
};

TEST_F(StepSegmentsTest, WhatIsSmallIsOneSegmentUpToTheLoss) {
  AddReaders({kSmall, kSmall});
  AddLoss();
  AddGradient(1);
  AddGradient(0);
  const std::vector<Segment> segments = Divide();
  ASSERT_THAT(Begins(), ElementsAre(0, 3));
  EXPECT_THAT(segments[0].parameters, ElementsAre(0, 1));
  EXPECT_TRUE(segments[0].makes_loss);
  EXPECT_THAT(segments[0].gradients, IsEmpty());
  EXPECT_THAT(segments[1].parameters, IsEmpty());
  EXPECT_FALSE(segments[1].makes_loss);
  EXPECT_THAT(segments[1].gradients, ElementsAre(1, 0));
}

TEST_F(StepSegmentsTest, ALargeParameterIsAwaitedByWhatReadsIt) {
  AddReaders({kSmall, kLarge, kSmall, kLarge - 1, 1});
  AddLoss();
  const std::vector<Segment> segments = Divide();
  ASSERT_THAT(Begins(), ElementsAre(0, 1, 3));
  EXPECT_THAT(segments[0].parameters, ElementsAre(0));
  EXPECT_THAT(segments[1].parameters, ElementsAre(1, 2));
  EXPECT_THAT(segments[2].parameters, ElementsAre(3, 4));
}

TEST_F(StepSegmentsTest, WhatTheFirstInstructionReadsDoesNotCount) {
  AddReaders({kLarge, kLarge - 1});
  AddLoss();
  EXPECT_THAT(Begins(), ElementsAre(0));
}

TEST_F(StepSegmentsTest, SmallParametersCountTogether) {
  AddInstructions(1);
  AddReaders({kLarge / 2, kLarge / 2, kLarge / 2});
  AddLoss();
  EXPECT_THAT(Begins(), ElementsAre(0, 2));
}

TEST_F(StepSegmentsTest, ALargeGradientGoesWithTheSmallOnesBeforeIt) {
  AddReaders({kSmall, kLarge, kSmall});
  AddLoss();
  AddGradient(2);
  AddGradient(1);
  AddGradient(0);
  const std::vector<Segment> segments = Divide();
  ASSERT_THAT(Begins(), ElementsAre(0, 1, 4, 6));
  EXPECT_THAT(segments[2].gradients, ElementsAre(2, 1));
  EXPECT_THAT(segments[3].gradients, ElementsAre(0));
}

TEST_F(StepSegmentsTest, SmallGradientsGoWhenTheyAreLargeTogether) {
  AddReaders({kLarge / 2, kLarge / 2 - 1, 1});
  AddLoss();
  AddGradient(2);
  AddGradient(0);
  AddGradient(1);
  AddInstructions(1);
  const std::vector<Segment> segments = Divide();
  ASSERT_THAT(Begins(), ElementsAre(0, 4, 7));
  EXPECT_THAT(segments[1].gradients, ElementsAre(2, 0, 1));
  EXPECT_THAT(segments[2].gradients, IsEmpty());
}

TEST_F(StepSegmentsTest, NothingComesAfterALargeGradientAtTheEnd) {
  AddReaders({kLarge});
  AddLoss();
  AddGradient(0);
  EXPECT_THAT(Begins(), ElementsAre(0, 2));
}

TEST_F(StepSegmentsTest, TheFirstPenaltyBeginsASegment) {
  AddReaders({kSmall, kSmall});
  AddLoss();
  AddInstructions(1);
  AddPenalty();
  AddPenalty();
  const std::vector<Segment> segments = Divide();
  ASSERT_THAT(Begins(), ElementsAre(0, 3, 4));
  EXPECT_FALSE(segments[1].changes_loss);
  EXPECT_TRUE(segments[2].changes_loss);
}

TEST_F(StepSegmentsTest, APenaltyRightAfterTheLossBeginsOneSegment) {
  AddLoss();
  AddPenalty();
  const std::vector<Segment> segments = Divide();
  ASSERT_THAT(Begins(), ElementsAre(0, 1));
  EXPECT_TRUE(segments[0].makes_loss);
  EXPECT_TRUE(segments[1].changes_loss);
}

}  // namespace
}  // namespace muster
