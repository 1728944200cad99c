#include "worker/dropped_step.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TaskId Task(int index) {
  TaskId task;
  task.set_job("worker");
  task.set_index(index);
  return task;
}

// Step 7, for round 4.
StepReport Report() {
  StepReport report;
  report.step = 7;
  report.round = 4;
  return report;
}

// Grants `round`, after one that took step 7 of this worker.
StepReply Granted(int64_t round, int chosen_worker) {
  StepReply reply;
  reply.set_granted(true);
  reply.mutable_token()->set_round(round);
  ChosenStep* chosen = reply.mutable_token()->add_chosen();
  *chosen->mutable_sender()->mutable_task() = Task(chosen_worker);
  chosen->set_step(7);
  return reply;
}

TEST(DroppedStepTest, AChosenStepIsNotDropped) {
  EXPECT_FALSE(WasDropped(Report(), Granted(5, 1), Task(1)));
}

TEST(DroppedStepTest, AStepThatItsRoundDidNotTakeIsDropped) {
  EXPECT_TRUE(WasDropped(Report(), Granted(5, 2), Task(1)));
}

TEST(DroppedStepTest, AStepThatAShardCalledLateIsDropped) {
  StepReport late = Report();
  late.late = true;
  EXPECT_TRUE(WasDropped(late, StepReply(), Task(1)));
}

TEST(DroppedStepTest, WhatTheAnswerDoesNotTellIsNotCalledDropped) {
  StepReply refused = Granted(5, 2);
  refused.set_granted(false);
  EXPECT_FALSE(WasDropped(Report(), refused, Task(1)));
  EXPECT_FALSE(WasDropped(Report(), Granted(6, 2), Task(1)));
}

TEST(DroppedStepTest, AModeWithoutRoundsDropsNothing) {
  StepReport report = Report();
  report.round = 0;
  EXPECT_FALSE(WasDropped(report, Granted(1, 2), Task(1)));
}

}  // namespace
}  // namespace muster
