#include "worker/session/dropped_step.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

// Step 7, for round 4.
StepReport Report() {
  StepReport report;
  report.step = 7;
  report.round = 4;
  return report;
}

// Grants `round`; of this worker, `chosen_step` is the newest in an update.
StepReply Granted(int64_t round, int64_t chosen_step) {
  StepReply reply;
  reply.set_granted(true);
  reply.mutable_token()->set_round(round);
  reply.mutable_token()->set_chosen_step(chosen_step);
  return reply;
}

TEST(DroppedStepTest, AChosenStepIsNotDropped) {
  EXPECT_FALSE(WasDropped(Report(), Granted(5, 7)));
  EXPECT_FALSE(WasDropped(Report(), Granted(6, 7)));
}

TEST(DroppedStepTest, AStepThatItsRoundDidNotTakeIsDropped) {
  EXPECT_TRUE(WasDropped(Report(), Granted(5, 6)));
  EXPECT_TRUE(WasDropped(Report(), Granted(6, 0)));
}

TEST(DroppedStepTest, AStepThatAShardCalledLateIsDropped) {
  StepReport late = Report();
  late.late = true;
  EXPECT_TRUE(WasDropped(late, StepReply()));
}

TEST(DroppedStepTest, WhatTheAnswerDoesNotTellIsNotCalledDropped) {
  StepReply refused = Granted(5, 6);
  refused.set_granted(false);
  EXPECT_FALSE(WasDropped(Report(), refused));
}

TEST(DroppedStepTest, AModeWithoutRoundsDropsNothing) {
  StepReport report = Report();
  report.round = 0;
  EXPECT_FALSE(WasDropped(report, Granted(1, 0)));
}

}  // namespace
}  // namespace muster
