#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/stopped_error.h"
#include "tests/worker/session/session_machine_fixture.h"
#include "worker/session/session_machine.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// Stopped by a signal or a hook before the job is done.
using SessionMachineStopTest = SessionMachineTest;

TEST_F(SessionMachineStopTest, ASignalBeforeTheFirstStepSavesWhatOthersDid) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7)});
  Send(RegisterEvent{Registered(State(INITIAL))});
  BeginEpochReply begun;
  begun.set_model_epoch(1);
  Send(BeginEpochEvent{begun});
  Send(LoadEvent{LoadedModel()});
  ASSERT_NE(Get<SendCommit>(), nullptr);
  Send(SignalEvent{15});
  CommitEpochReply committed;
  *committed.mutable_state() = State(RUNNING, 1, {7});
  Send(CommitEvent{committed});
  EXPECT_EQ(Get<SendFinish>(), nullptr);
  ASSERT_NE(Get<SendStep>(), nullptr) << "nobody takes another step";
  EXPECT_EQ(Get<SendStep>()->stop_reason, "interrupted");
  Send(WatchEvent{State(STOPPING, 1, {7})});
  Send(StepEvent{Reply(false, 1, STOPPING)});
  EXPECT_NE(Get<RunFinal>(), nullptr);
}

TEST_F(SessionMachineStopTest, TheChiefEndsAJobThatAnOperatorStops) {
  RunToFirstStep(/*chief=*/true);
  JobState state = State(RUNNING, 1, {7});
  state.set_is_stopped(true);
  Send(WatchEvent{state});
  Send(TrainEvent{StepReport()});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->stop_reason, "operator");
  state.set_phase(STOPPING);
  state.set_stop_reason("operator");
  Send(WatchEvent{state});
  Send(StepEvent{Reply(false, 1, STOPPING)});
  ASSERT_NE(Get<RunFinal>(), nullptr);
  EXPECT_TRUE(Get<RunFinal>()->completed);
  EXPECT_EQ(Get<RunFinal>()->stop_reason, "operator");
}

TEST_F(SessionMachineStopTest, AnEndThatAnOperatorDiscards_IsNotSaved) {
  RunToFirstStep(/*chief=*/true);
  JobState state = State(RUNNING, 1, {7});
  state.set_is_stopped(true);
  state.set_discards_end(true);
  Send(WatchEvent{state});
  Send(TrainEvent{StepReport()});
  ASSERT_NE(Get<SendStep>(), nullptr);
  state.set_phase(STOPPING);
  state.set_stop_reason(Get<SendStep>()->stop_reason);
  Send(WatchEvent{state});
  Send(StepEvent{Reply(false, 1, STOPPING)});
  ASSERT_NE(Get<RunFinal>(), nullptr);
  EXPECT_TRUE(Get<RunFinal>()->completed);
  EXPECT_TRUE(Get<RunFinal>()->is_discarded);
}

TEST_F(SessionMachineStopTest, AWorkerOfAJobThatAnOperatorStops_EndsNothing) {
  RunToFirstStep(/*chief=*/false);
  JobState state = State(RUNNING, 1, {7});
  state.set_is_stopped(true);
  Send(WatchEvent{state});
  Send(TrainEvent{StepReport()});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->stop_reason, "");
}

TEST_F(SessionMachineStopTest, SignalFinishesTheStepAndReportsIt) {
  RunToFirstStep(/*chief=*/false);
  Send(SignalEvent{15});
  EXPECT_TRUE(actions_.empty());
  Send(TrainEvent{StepReport()});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.step, 1);
  Send(StepEvent{Reply(true, 1)});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_FALSE(Get<SendFinish>()->stop_job);
  Send(FinishEvent{FinishReply()});
  EXPECT_EQ(Get<Exit>()->code, 143);
}

TEST_F(SessionMachineStopTest,
       ASignalledWorkerFinishesItsPushWithinFiveSeconds) {
  for (const bool chief : {false, true}) {
    RunToFirstStep(chief);
    Send(SignalEvent{15});
    Send(TrainEvent{absl::UnavailableError("reset"), /*may_resume=*/true});
    Pass(absl::Seconds(4));
    EXPECT_EQ(Get<SendFinish>(), nullptr);
    Send(HelloEvent{0, Shard(7, 1)});
    ASSERT_NE(Get<ResumeStep>(), nullptr) << chief;
    Send(TrainEvent{StepReport()});
    ASSERT_NE(Get<SendStep>(), nullptr);
    EXPECT_EQ(Get<SendStep>()->report.step, 1);
  }
}

TEST_F(SessionMachineStopTest, ASignalledWorkerSaysWhichStepMayNotBeCounted) {
  for (const bool chief : {false, true}) {
    RunToFirstStep(chief);
    Send(SignalEvent{15});
    Send(TrainEvent{absl::UnavailableError("push of step 1: ps: reset"),
                    /*may_resume=*/true});
    Pass(absl::Seconds(4));
    EXPECT_EQ(Get<Exit>(), nullptr);
    Pass(absl::Seconds(1));
    EXPECT_EQ(Said("is not counted"),
              "step 1 of this task is not counted, and may be in the "
              "parameters: push of step 1: ps: reset");
    ASSERT_NE(Get<Exit>(), nullptr) << chief;
    EXPECT_EQ(Get<Exit>()->code, 143);
  }
}

TEST_F(SessionMachineStopTest, SignalledChiefStopsTheJobAndSaves) {
  RunToFirstStep(/*chief=*/true);
  Send(SignalEvent{2});
  Send(TrainEvent{StepReport()});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.step, 1);
  EXPECT_EQ(Get<SendStep>()->stop_reason, "interrupted");
  Send(StepEvent{Reply(false, 1, STOPPING)});
  ASSERT_NE(Get<RunFinal>(), nullptr);
  EXPECT_FALSE(Get<RunFinal>()->completed);
  Send(FinalEvent{absl::OkStatus()});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_TRUE(Get<SendFinish>()->stop_job);
  Send(FinishEvent{absl::UnavailableError("gone")});
  EXPECT_EQ(Get<Exit>()->code, 130);
}

TEST_F(SessionMachineStopTest, SignalledChiefSavesWhatTheOthersStillReport) {
  RunToFirstStep(/*chief=*/true);
  DrainBesideAnother();
  EXPECT_EQ(Get<RunFinal>(), nullptr);
  JobState state = StateWithAnother(STOPPING);
  state.mutable_workers(0)->set_finished(true);
  Send(WatchEvent{state});
  ASSERT_NE(Get<RunFinal>(), nullptr);
  EXPECT_FALSE(Get<RunFinal>()->completed);
}

TEST_F(SessionMachineStopTest, SignalledChiefWaitsForTheOthersOnlySoLong) {
  RunToFirstStep(/*chief=*/true);
  DrainBesideAnother();
  EXPECT_LE(machine_->next_wakeup(), now_ + absl::Seconds(5));
  Pass(absl::Seconds(4));
  EXPECT_EQ(Get<RunFinal>(), nullptr);
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<RunFinal>(), nullptr);
  ASSERT_NE(Get<Say>(), nullptr);
  EXPECT_THAT(Get<Say>()->text,
              HasSubstr("not waiting for /job:worker/task:1 any longer"));
}

TEST_F(SessionMachineStopTest, SignalledChiefTriesItsSaveAfterALostAnswer) {
  RunToFirstStep(/*chief=*/true);
  Send(SignalEvent{15});
  Send(TrainEvent{StepReport()});
  Send(StepEvent{absl::UnavailableError("reset")});
  EXPECT_EQ(Get<Exit>(), nullptr);
  ASSERT_NE(Get<SendHello>(), nullptr);
  Send(HelloEvent{0, Shard(7, 1)});
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.step, 1);
  EXPECT_EQ(Get<SendStep>()->stop_reason, "interrupted");
}

TEST_F(SessionMachineStopTest, SignalledChiefLeavesAPsThatStaysAway) {
  RunToFirstStep(/*chief=*/true);
  Send(SignalEvent{15});
  Send(TrainEvent{absl::UnavailableError("reset")});
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Get<Exit>(), nullptr);
    Send(HelloEvent{0, absl::UnavailableError("refused")});
    Pass(absl::Seconds(1));
  }
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, 143);
}

TEST_F(SessionMachineStopTest, SignalledChiefSaysThatItCouldNotSave) {
  RunToFirstStep(/*chief=*/true);
  Send(SignalEvent{15});
  Send(TrainEvent{StepReport()});
  Send(StepEvent{Reply(false, 1, STOPPING)});
  Send(FinalEvent{absl::ResourceExhaustedError("disk full")});
  ASSERT_NE(Get<Say>(), nullptr);
  EXPECT_TRUE(Get<Say>()->is_error);
  EXPECT_EQ(Get<Say>()->text, "disk full");
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_TRUE(Get<SendFinish>()->unsaved);
  Send(FinishEvent{FinishReply()});
  EXPECT_EQ(Get<Exit>()->code, 143);
}

// The steps since the newest checkpoint are gone with the ps: another start of
// the chief is to take them again.
TEST_F(SessionMachineStopTest, SignalledChiefOfALostPsSaysThatNothingIsSaved) {
  RunToFirstStep(/*chief=*/true);
  Send(SignalEvent{15});
  Send(TrainEvent{absl::UnavailableError("reset")});
  Send(HelloEvent{0, Shard(8)});
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<SendRegister>(), nullptr);
  Send(RegisterEvent{Registered(State(STOPPING, 1, {7}))});
  EXPECT_EQ(Get<RunFinal>(), nullptr);
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_TRUE(Get<SendFinish>()->unsaved);
  ASSERT_NE(Get<Say>(), nullptr);
  EXPECT_TRUE(Get<Say>()->is_error);
  Send(FinishEvent{Finished(State(STOPPING, 1, {7}))});
  EXPECT_EQ(Get<Exit>()->code, 143);
}

// What is saved is; the next start evaluates it, and so is no failure and no
// ordinary end.
TEST_F(SessionMachineStopTest, AStopInTheLastEvaluationIsTheSignalsAndSaved) {
  RunToFinal();
  Send(SignalEvent{15});
  Send(FinalEvent{StoppedError("evaluation")});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_FALSE(Get<SendFinish>()->unsaved);
  EXPECT_EQ(Said("evaluation"), "");
  Send(FinishEvent{FinishReply()});
  EXPECT_EQ(Get<Exit>()->code, 143);
}

// Not 3: the checkpoint was never found to be bad.
TEST_F(SessionMachineStopTest, AStopWhileItRestoresEndsTheJobUnsaved) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7)});
  Send(RegisterEvent{Registered(State(INITIAL))});
  BeginEpochReply begun;
  begun.set_model_epoch(1);
  Send(BeginEpochEvent{begun});
  ASSERT_NE(Get<LoadModel>(), nullptr);
  Send(SignalEvent{15});
  Send(LoadEvent{StoppedError("read 'file'"), /*checkpoint_unusable=*/true});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_TRUE(Get<SendFinish>()->stop_job);
  Send(FinishEvent{FinishReply()});
  EXPECT_EQ(Get<Exit>()->code, 143);
}

TEST_F(SessionMachineStopTest, AStepThatStillWaitsForRowsIsGivenUp) {
  RunToFirstStep(/*chief=*/true);
  Send(SignalEvent{15});
  Send(TrainEvent{StoppedError("input")});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_TRUE(Get<SendStep>()->report.abandoned);
  EXPECT_EQ(Get<SendStep>()->stop_reason, "interrupted");
  Send(StepEvent{Reply(false, 1, STOPPING)});
  EXPECT_NE(Get<RunFinal>(), nullptr) << "saving goes on";
}

TEST_F(SessionMachineStopTest, SignalAfterTheLastSaveIsAnOrdinaryEnd) {
  RunToFinal();
  Send(SignalEvent{15});
  Send(FinalEvent{absl::OkStatus()});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_EQ(Get<SendFinish>()->reason, "done");
  Send(FinishEvent{FinishReply()});
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

// It has saved: nobody will start it again.
TEST_F(SessionMachineStopTest, ASignalDoesNotKeepAChiefFromTellingTheEnd) {
  RunToFinal();
  Send(FinalEvent{absl::OkStatus()});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  Send(SignalEvent{15});
  Send(FinishEvent{absl::UnavailableError("refused")});
  EXPECT_EQ(Get<Exit>(), nullptr);
  Pass(machine_->next_wakeup() - now_);
  ASSERT_NE(Get<SendFinish>(), nullptr);
  Send(FinishEvent{Finished(State(STOPPING, 1, {7}))});
  ASSERT_NE(Get<Exit>(), nullptr) << "it does not stay, though";
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

TEST_F(SessionMachineStopTest, SignalWhileWaitingExitsAtOnce) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(SignalEvent{15});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, 143);
}

TEST_F(SessionMachineStopTest, ChiefStopsTheJobForAHook) {
  RunToFirstStep(/*chief=*/true);
  Send(TrainEvent{StepReport()});
  Send(StopEvent{"target_accuracy", absl::OkStatus()});
  EXPECT_TRUE(actions_.empty());
  // The step that was granted is not taken.
  Send(StepEvent{Reply(true, 1)});
  EXPECT_EQ(Get<TrainStep>(), nullptr);
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->stop_reason, "target_accuracy");
  Send(StepEvent{Reply(false, 1, STOPPING)});
  EXPECT_EQ(Get<SendStep>(), nullptr);
  JobState state = State(STOPPING, 1, {7});
  state.set_stop_reason("target_accuracy");
  Send(WatchEvent{state});
  ASSERT_NE(Get<RunFinal>(), nullptr);
  EXPECT_TRUE(Get<RunFinal>()->completed);
  EXPECT_EQ(Get<RunFinal>()->stop_reason, "target_accuracy");
  Send(FinalEvent{absl::OkStatus()});
  Send(FinishEvent{FinishReply()});
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

TEST_F(SessionMachineStopTest, StopForAFailureSavesNothingAndExitsWithOne) {
  RunToFirstStep(/*chief=*/true);
  Send(StopEvent{"non_finite", absl::OutOfRangeError("the loss is nan")});
  StepReport refused;
  refused.abandoned = true;
  Send(TrainEvent{refused});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_TRUE(Get<SendStep>()->report.abandoned);
  EXPECT_EQ(Get<SendStep>()->stop_reason, "non_finite");
  Send(WatchEvent{State(STOPPING, 1, {7})});
  Send(StepEvent{Reply(false, 1, STOPPING)});
  ASSERT_NE(Get<RunFinal>(), nullptr);
  EXPECT_TRUE(Get<RunFinal>()->completed);
  EXPECT_TRUE(Get<RunFinal>()->failed);
  Send(FinalEvent{absl::OkStatus()});
  Send(FinishEvent{FinishReply()});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitFailed);
  EXPECT_EQ(Get<Exit>()->text, "the loss is nan");
}

TEST_F(SessionMachineStopTest, StopIsAskedForAgainAfterARestore) {
  RunToFirstStep(/*chief=*/true);
  Send(StopEvent{"seconds", absl::OkStatus()});
  Send(TrainEvent{StepReport()});
  Send(StepEvent{Reply(false, 1, STOPPING)});
  // A ps lost its memory; the job runs again.
  Send(WatchEvent{State(RUNNING, 2, {7})});
  ASSERT_NE(Get<SendStep>(), nullptr);
  Send(StepEvent{Reply(true, 2)});
  EXPECT_EQ(Get<TrainStep>(), nullptr);
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->stop_reason, "seconds");
}

TEST_F(SessionMachineStopTest, OnlyTheChiefCanStopTheJob) {
  RunToFirstStep(/*chief=*/false);
  Send(StopEvent{"seconds", absl::OkStatus()});
  Send(TrainEvent{StepReport()});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->stop_reason, "");
}

}  // namespace
}  // namespace muster
