// A job that is over without this task's doing, or that will not have it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

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

// A bit of a state that was changed on its way, in a version of its own.
TEST_F(SessionMachineLateTest, AMemberThatHearsOfAnotherModelAsksOnceMore) {
  for (const bool is_damage : {true, false}) {
    RunToFirstStep(/*chief=*/false);
    Send(TrainEvent{StepReport()});
    JobState state = State(RUNNING, 1, {7});
    state.set_fingerprint(kFingerprint + 1);
    Send(WatchEvent{state});
    Send(StepEvent{Reply(true, 1)});
    EXPECT_EQ(Get<Exit>(), nullptr);
    Pass(absl::Seconds(1));
    Send(HelloEvent{0, Shard(7, 1)});
    ASSERT_NE(Get<SendRegister>(), nullptr);
    if (is_damage) state = State(RUNNING, 1, {7});
    state.set_state_version(1);
    Send(RegisterEvent{Registered(state)});
    EXPECT_EQ(Get<SendStep>() != nullptr, is_damage);
    EXPECT_EQ(Get<Exit>() != nullptr, !is_damage);
  }
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("hold another model"));
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

// ---- No ps task is there any more ----------------------------------------

class SessionMachineGonePsTest : public SessionMachineTest {
 protected:
  // From a start, or the loss of ps task 0, to the exit; how long that took.
  absl::Duration TimeToExit() {
    const absl::Time start = now_;
    Send(HelloEvent{0, absl::UnavailableError("connection refused")});
    while (Get<Exit>() == nullptr && now_ < start + absl::Hours(1)) {
      said_ += Said("finished already") + Said("has reached its end");
      Pass(absl::Seconds(1));
    }
    said_ += Said("finished already") + Said("has reached its end");
    return now_ - start;
  }

  // The state of a job that stops, in which chief and worker 1 are so.
  JobState Stopping(bool chief_has_finished, bool unsaved) {
    JobState state = StateWithAnother(STOPPING);
    state.set_stop_reason("steps");
    state.set_global_step(20);
    state.set_unsaved(unsaved);
    WorkerState* const chief = state.add_workers();
    chief->mutable_sender()->mutable_task()->set_job("worker");
    chief->mutable_sender()->set_incarnation(4);
    chief->set_finished(chief_has_finished);
    return state;
  }

  // A worker learns of this state, then its calls fail.
  void LosePsAfter(JobState state) {
    RunToFirstStep(/*chief=*/false);
    state.set_state_version(++version_);
    Send(WatchEvent{std::move(state)});
    Send(TrainEvent{absl::UnavailableError("reset")});
  }

  std::string said_;
};

TEST_F(SessionMachineGonePsTest, AFinishedRunThatIsStartedAgain_EndsWell) {
  finished_ = "step 20, by stop.steps, as run1 says";
  for (const bool chief : {true, false}) {
    said_.clear();
    Start(chief);
    Send(TickEvent{});
    EXPECT_EQ(TimeToExit(), absl::Seconds(chief ? 10 : 20));
    EXPECT_EQ(Get<Exit>()->code, kExitDone);
    EXPECT_TRUE(Get<Exit>()->without_ps);
    EXPECT_EQ(said_,
              "the training was finished already: step 20, by stop.steps, as "
              "run1 says, and its ps tasks have left: /job:ps/task:0 at "
              "host0:2222 (connection refused)");
  }
}

TEST_F(SessionMachineGonePsTest, AFinishedRunWithItsPsTasks_IsNotLeft) {
  finished_ = "step 20, by stop.steps, as run1 says";
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, absl::UnavailableError("connection refused")});
  Pass(absl::Seconds(9));
  Send(HelloEvent{0, Shard(7)});
  Pass(absl::Seconds(9));
  EXPECT_EQ(Get<Exit>(), nullptr);
}

// A supervisor has started one of them anew.
TEST_F(SessionMachineGonePsTest, AFinishedRunWithoutPsTaskZero_EndsWell) {
  finished_ = "step 20, by stop.steps, as run1 says";
  Start(/*chief=*/true, /*ps_tasks=*/2);
  Send(TickEvent{});
  Send(HelloEvent{1, Shard(8)});
  EXPECT_EQ(TimeToExit(), absl::Seconds(10));
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
  // The other way round, the job may be about to begin anew.
  Start(/*chief=*/true, /*ps_tasks=*/2);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7)});
  Send(HelloEvent{1, absl::UnavailableError("connection refused")});
  Pass(absl::Seconds(30));
  EXPECT_EQ(Get<Exit>(), nullptr);
}

TEST_F(SessionMachineGonePsTest, WhoeverKnowsOfNoEnd_WaitsAndIsTriedAgain) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  EXPECT_EQ(TimeToExit(), absl::Seconds(60));
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
  LosePsAfter(StateWithAnother(RUNNING));
  EXPECT_EQ(TimeToExit(), absl::Seconds(60));
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
}

TEST_F(SessionMachineGonePsTest, AWorkerThatHasSeenTheSavedEnd_EndsWell) {
  LosePsAfter(Stopping(/*chief_has_finished=*/true, /*unsaved=*/false));
  EXPECT_EQ(TimeToExit(), absl::Seconds(10));
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
  EXPECT_THAT(said_, HasSubstr("reached its end (steps, at step 20), and its"));
}

// A ps that has died may be back, and wants its workers.
TEST_F(SessionMachineGonePsTest, AWorkerThatHasSeenTheEndComing_WaitsLonger) {
  LosePsAfter(Stopping(/*chief_has_finished=*/false, /*unsaved=*/true));
  EXPECT_EQ(TimeToExit(), absl::Seconds(20));
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

TEST_F(SessionMachineGonePsTest, AnEndThatIsOnNoDisk_IsTriedAgain) {
  JobState state = Stopping(/*chief_has_finished=*/false, /*unsaved=*/true);
  state.mutable_workers(1)->set_lost(true);
  LosePsAfter(state);
  EXPECT_EQ(TimeToExit(), absl::Seconds(60));
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
}

// The chief has not saved yet, or it would be leaving.
TEST_F(SessionMachineGonePsTest, AChiefThatHasSeenTheEnd_IsTriedAgain) {
  RunToFirstStep(/*chief=*/true);
  Send(WatchEvent{State(STOPPING, 1, {7})});
  Send(TrainEvent{absl::UnavailableError("reset")});
  EXPECT_EQ(TimeToExit(), absl::Seconds(60));
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
}

// Ps task 0 stays for whoever stood still over the end; the others do not.
TEST_F(SessionMachineGonePsTest,
       WithPsTaskZeroAlone_ItIsAskedWhetherAllIsOver) {
  goal_.stop.set_steps(20);
  Start(/*chief=*/false, /*ps_tasks=*/2);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7, 1)});
  Send(HelloEvent{1, absl::UnavailableError("connection refused")});
  EXPECT_EQ(Get<SendRegister>(), nullptr) << "it may only be late";
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<SendRegister>(), nullptr);
  EXPECT_TRUE(Get<SendRegister>()->asks_only);
  Send(RegisterEvent{Registered(State(RUNNING, 1, {7}))});
  EXPECT_EQ(Get<Exit>(), nullptr);
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<SendRegister>(), nullptr);
  JobState state = State(DONE, 1, {7});
  state.set_global_step(20);
  state.set_stop_reason("steps");
  Send(RegisterEvent{Registered(state)});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
  EXPECT_NE(Said("the job was over before this task came (steps, at"), "");
}

}  // namespace
}  // namespace muster
