// A job that is over without this task's doing, or that will not have it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/rpc/error_reason.h"
#include "tests/worker/session/session_machine_fixture.h"
#include "worker/session/session_machine.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

using SessionMachineLateTest = SessionMachineTest;

// ps_server --keep_serving.
TEST_F(SessionMachineLateTest, AJobThatWasOverBeforeMustHaveReachedItsGoal) {
  goal_.stop.set_steps(20);
  for (const bool chief : {false, true}) {
    for (const int64_t steps : {20, 19}) {
      Start(chief);
      Send(TickEvent{});
      Send(HelloEvent{0, Shard(7, 1)});
      JobState state = State(DONE, 1, {7});
      state.set_stop_reason("steps");
      state.set_global_step(steps);
      WorkerState* first = state.add_workers();
      first->mutable_sender()->mutable_task()->set_job("worker");
      first->set_finished(true);
      Send(RegisterEvent{Registered(state)});
      ASSERT_NE(Get<Exit>(), nullptr);
      EXPECT_EQ(Get<Exit>()->code, steps == 20 ? kExitDone : kExitBadConfig);
      const std::string text =
          steps == 20 ? Get<Say>()->text : Get<Exit>()->text;
      EXPECT_THAT(text, HasSubstr("was over before this task came (steps, at"));
      if (steps == 20) continue;
      EXPECT_THAT(text, HasSubstr("stop.steps 20 of this training is not"));
      EXPECT_THAT(text, HasSubstr("start the ps tasks anew"));
    }
  }
}

TEST_F(SessionMachineLateTest, AJobThatWasStoppedBeforeIsTriedAgain) {
  goal_.stop.set_steps(20);
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7, 1)});
  JobState state = State(DONE, 1, {7});
  state.set_stop_reason("interrupted");
  Send(RegisterEvent{Registered(state)});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
}

// It took part: how the job ended is the chief's to say.
TEST_F(SessionMachineLateTest, AWorkerOfAJobThatWasStoppedEndsWell) {
  goal_.stop.set_steps(20);
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{absl::UnavailableError("reset")});
  JobState state = State(DONE, 1, {7});
  state.set_stop_reason("interrupted");
  Send(WatchEvent{state});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

// Somebody else has sent its Finish.
TEST_F(SessionMachineLateTest, AChiefEndsWellOnlyIfItHasSaved) {
  saves_ = true;
  RunToFirstStep(/*chief=*/true);
  Send(TrainEvent{StepReport()});
  JobState state = State(DONE, 1, {7});
  WorkerState* chief = state.add_workers();
  chief->mutable_sender()->mutable_task()->set_job("worker");
  chief->set_finished(true);
  Send(WatchEvent{state});
  Send(StepEvent{Reply(false, 1, DONE)});
  EXPECT_EQ(Get<Exit>(), nullptr);
  ASSERT_NE(Get<RunFinal>(), nullptr);
  Send(FinalEvent{absl::UnavailableError("refused")});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("last save is missing"));
}

TEST_F(SessionMachineLateTest, AChiefThatComesBackLooksWhetherItWasSaved) {
  saves_ = true;
  for (const int64_t saved_step : {20, 10}) {
    saved_step_ = saved_step;
    Start(/*chief=*/true);
    Send(TickEvent{});
    Send(HelloEvent{0, Shard(7, 1)});
    JobState state = State(DONE, 1, {7});
    state.set_global_step(20);
    WorkerState* chief = state.add_workers();
    chief->mutable_sender()->mutable_task()->set_job("worker");
    chief->set_finished(true);
    Send(RegisterEvent{Registered(state)});
    EXPECT_EQ(Get<Exit>() != nullptr, saved_step == 20);
    EXPECT_EQ(Get<RunFinal>() != nullptr, saved_step == 10);
  }
}

// The chief came with another training, and ps task 0 has told it to register.
TEST_F(SessionMachineLateTest, AWorkerOfAnotherTrainingEndsWithTheDifference) {
  RunToFirstStep(/*chief=*/false);
  Send(WatchEvent{absl::FailedPreconditionError("not registered; register")});
  Send(TrainEvent{StepReport()});
  Send(HelloEvent{0, Shard(7, 1)});
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<SendRegister>(), nullptr);
  Send(RegisterEvent{absl::InvalidArgumentError("line 2 is 'lr: 0.2'")});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitBadConfig);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("line 2 is 'lr: 0.2'"));
}

// The network changes what it carries, again and again.
TEST_F(SessionMachineLateTest, DamageWithoutEndIsNoMistakeOfThisTask) {
  const absl::Status damaged =
      Damaged(absl::InvalidArgumentError("is not a muster.StepRequest"));
  for (const bool in_training : {false, true}) {
    RunToFirstStep(/*chief=*/false);
    if (in_training) {
      Send(TrainEvent{damaged});
    } else {
      Send(TrainEvent{StepReport()});
      Send(StepEvent{damaged});
    }
    ASSERT_NE(Get<SendFinish>(), nullptr);
    Send(FinishEvent{FinishReply()});
    ASSERT_NE(Get<Exit>(), nullptr);
    EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
  }
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, damaged});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
}

TEST_F(SessionMachineLateTest, WhatIsRefusedForGoodIsNotSentAgain) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  Send(StepEvent{absl::InvalidArgumentError("examples 10 (a step has 5)")});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  Send(FinishEvent{FinishReply()});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitBadConfig);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("a step has 5"));
}

}  // namespace
}  // namespace muster
