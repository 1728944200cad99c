#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/error_reason.h"
#include "tests/worker/session/session_machine_fixture.h"
#include "worker/client/call_status.h"
#include "worker/session/session_machine.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// Done or failed.
using SessionMachineEndTest = SessionMachineTest;

TEST_F(SessionMachineEndTest, WorkerFinishesWhenTheJobStops) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  Send(WatchEvent{State(STOPPING, 1, {7})});
  Send(StepEvent{Reply(false, 1, STOPPING)});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_EQ(Get<SendFinish>()->reason, "done");
  Send(FinishEvent{FinishReply()});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

TEST_F(SessionMachineEndTest, ChiefFinishesLast) {
  RunToFirstStep(/*chief=*/true);
  Send(TrainEvent{StepReport()});
  Send(StepEvent{Reply(false, 1, STOPPING)});
  JobState state = StateWithAnother(STOPPING);
  Send(WatchEvent{state});
  EXPECT_EQ(Get<RunFinal>(), nullptr);
  state.set_state_version(++version_);
  state.mutable_workers(0)->set_finished(true);
  Send(WatchEvent{state});
  ASSERT_NE(Get<RunFinal>(), nullptr);
  EXPECT_TRUE(Get<RunFinal>()->completed);
  Send(FinalEvent{absl::OkStatus()});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  Send(FinishEvent{FinishReply()});
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

// It heard of the end before it reported its last step, which the result
// counts.
TEST_F(SessionMachineEndTest, ChiefAwaitsTheStateThatCountsItsLastStep) {
  RunToFirstStep(/*chief=*/true);
  Send(WatchEvent{State(STOPPING, 1, {7})});
  Send(TrainEvent{StepReport()});
  const JobState counted = State(STOPPING, 1, {7});
  Send(StepEvent{Reply(false, 1, STOPPING)});
  EXPECT_EQ(Get<RunFinal>(), nullptr);
  Send(WatchEvent{counted});
  EXPECT_NE(Get<RunFinal>(), nullptr);
}

// Started again, it has nothing to train.
TEST_F(SessionMachineEndTest, WhoComesToAFinishedTrainingSaysSoAndByWhat) {
  for (const bool chief : {false, true}) {
    Start(chief);
    Send(TickEvent{});
    Send(HelloEvent{0, Shard(7)});
    Send(RegisterEvent{Registered(State(INITIAL))});
    EXPECT_EQ(Get<Say>(), nullptr);
    JobState state = State(STOPPING, 1, {7});
    state.set_stop_reason("steps");
    state.set_global_step(1000);
    Send(WatchEvent{state});
    ASSERT_NE(Get<Say>(), nullptr);
    EXPECT_EQ(Get<Say>()->text,
              "the training was finished already: step 1000, by stop.steps");
    state.set_state_version(++version_);
    Send(WatchEvent{state});
    EXPECT_EQ(Get<Say>(), nullptr) << "once";
  }
}

TEST_F(SessionMachineEndTest, WhoHasTrainedDoesNotCallItFinishedAlready) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  JobState state = State(STOPPING, 1, {7});
  state.set_stop_reason("steps");
  Send(WatchEvent{state});
  EXPECT_EQ(Get<Say>(), nullptr);
}

// There may be room for the next start of the chief, and the ps tasks keep the
// model for it.
TEST_F(SessionMachineEndTest, FullDiskAtTheEndMayBeTriedAgainAndIsTold) {
  RunToFinal();
  Send(FinalEvent{absl::ResourceExhaustedError("final save: disk full")});
  EXPECT_EQ(Get<SendHello>(), nullptr) << "no peer is lost";
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_EQ(Get<SendFinish>()->reason, "done");
  EXPECT_TRUE(Get<SendFinish>()->unsaved);
  Send(FinishEvent{Finished(State(STOPPING, 1, {7}))});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("disk full"));
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("another start of this task saves"));
}

TEST_F(SessionMachineEndTest, AnotherFailureAtTheEndIsFinalAndTold) {
  RunToFinal();
  Send(FinalEvent{absl::InternalError("final save: sync: I/O error")});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_TRUE(Get<SendFinish>()->unsaved);
  Send(FinishEvent{Finished(State(STOPPING, 1, {7}))});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitFailed);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("I/O error"));
}

// A folder that is gone has the code of a coordinator that has forgotten us.
TEST_F(SessionMachineEndTest, AFileThatCannotBeWrittenIsNoLostPeer) {
  for (const absl::Status& status :
       {absl::NotFoundError("final save: create folder 'train/.tmp': gone"),
        absl::FailedPreconditionError("rename to 'train': is a directory"),
        absl::DeadlineExceededError("write 'train': timed out"),
        absl::AbortedError("write 'train': stale file handle")}) {
    RunToFinal();
    Send(FinalEvent{OfFile(status)});
    EXPECT_EQ(Get<SendHello>(), nullptr);
    ASSERT_NE(Get<SendFinish>(), nullptr) << status;
    EXPECT_TRUE(Get<SendFinish>()->unsaved);
    Send(FinishEvent{Finished(State(STOPPING, 1, {7}))});
    ASSERT_NE(Get<Exit>(), nullptr);
    EXPECT_EQ(Get<Exit>()->code, kExitFailed);
    EXPECT_THAT(Get<Exit>()->text, HasSubstr("'train"));
  }
}

TEST_F(SessionMachineEndTest, WhoIsReplacedAtTheEndLeavesTheEndToItsSuccessor) {
  RunToFinal();
  Send(FinalEvent{absl::OkStatus()});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  Send(FinishEvent{FencedError("finish: was replaced by a newer start",
                               ErrorReason::kReplaced)});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitFailed);
  EXPECT_TRUE(Get<Exit>()->is_replaced);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("newer start"));
}

TEST_F(SessionMachineEndTest, ValuesThatMayNotBeSavedAreNoLostPeer) {
  RunToFinal();
  Send(FinalEvent{absl::OutOfRangeError("save 'w': element 3 of 5 is inf")});
  EXPECT_EQ(Get<SendHello>(), nullptr);
  ASSERT_NE(Get<SendFinish>(), nullptr);
  Send(FinishEvent{Finished(State(STOPPING, 1, {7}))});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitFailed);
}

// The ps tasks of a chief that could not save: its next start does.
TEST_F(SessionMachineEndTest, AChiefThatComesBackToTheEndSaves) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7, 1)});
  Send(RegisterEvent{Registered(State(STOPPING, 1, {7}))});
  ASSERT_NE(Get<RunFinal>(), nullptr);
  EXPECT_TRUE(Get<RunFinal>()->completed);
  Send(FinalEvent{absl::OkStatus()});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_FALSE(Get<SendFinish>()->unsaved);
  Send(FinishEvent{Finished(State(DONE, 1, {7}))});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

TEST_F(SessionMachineEndTest, AJobThatHasFailedStaysFailed) {
  for (const JobPhase phase : {STOPPING, DONE}) {
    for (const char* reason : {"failed: broken", "non_finite"}) {
      Start(/*chief=*/true);
      Send(TickEvent{});
      Send(HelloEvent{0, Shard(7, 1)});
      JobState state = State(phase, 1, {7});
      state.set_stop_reason(reason);
      Send(RegisterEvent{Registered(state)});
      EXPECT_EQ(Get<RunFinal>(), nullptr) << "nothing is saved";
      if (phase == STOPPING) {
        ASSERT_NE(Get<SendFinish>(), nullptr);
        EXPECT_FALSE(Get<SendFinish>()->unsaved);
        Send(FinishEvent{Finished(State(DONE, 1, {7}))});
      }
      ASSERT_NE(Get<Exit>(), nullptr);
      EXPECT_EQ(Get<Exit>()->code, kExitFailed);
      EXPECT_THAT(Get<Exit>()->text, HasSubstr(reason));
    }
  }
}

TEST_F(SessionMachineEndTest, AChiefThatComesBackToTooFewSavesAndEnds) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7, 1)});
  JobState state = State(STOPPING, 1, {7});
  state.set_stop_reason("failed: too few replicas to go on: 1 there");
  Send(RegisterEvent{Registered(state)});
  ASSERT_NE(Get<RunFinal>(), nullptr);
  EXPECT_FALSE(Get<RunFinal>()->completed);
  Send(FinalEvent{absl::OkStatus()});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  Send(FinishEvent{Finished(State(DONE, 1, {7}))});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
}

// ps task 0 may wait for a worker that is still to come.
TEST_F(SessionMachineEndTest, ChiefStaysUntilTheJobIsDone) {
  RunToFinal();
  Send(FinalEvent{absl::OkStatus()});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  Send(FinishEvent{Finished(State(STOPPING, 1, {7}))});
  EXPECT_EQ(Get<Exit>(), nullptr);
  Pass(machine_->next_wakeup() - now_);
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_FALSE(Get<SendFinish>()->stop_job);
  // A new ps task 0 is told.
  Send(FinishEvent{absl::FailedPreconditionError("not registered here")});
  Pass(machine_->next_wakeup() - now_);
  ASSERT_NE(Get<SendRegister>(), nullptr);
  Send(RegisterEvent{Registered(State(INITIAL))});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_TRUE(Get<SendFinish>()->stop_job);
  Send(FinishEvent{Finished(State(STOPPING))});
  EXPECT_EQ(Get<Exit>(), nullptr);
  Pass(machine_->next_wakeup() - now_);
  Send(FinishEvent{Finished(State(DONE))});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

// Seed 701173 of the simulation: ps task 0 was restarted twice.
TEST_F(SessionMachineEndTest, ChiefTellsEachNewPsThatTheJobIsOver) {
  RunToFinal();
  Send(FinalEvent{absl::OkStatus()});
  Send(FinishEvent{Finished(State(STOPPING, 1, {7}))});
  for (int restart = 0; restart < 3; ++restart) {
    // As long as a chief tries without an answer, and as one stays.
    for (int attempt = 0; attempt < 9; ++attempt) {
      Pass(machine_->next_wakeup() - now_);
      ASSERT_NE(Get<SendFinish>(), nullptr);
      Send(FinishEvent{absl::UnavailableError("refused")});
    }
    Pass(machine_->next_wakeup() - now_);
    Send(FinishEvent{absl::FailedPreconditionError("not registered here")});
    EXPECT_EQ(Get<Exit>(), nullptr);
    Pass(machine_->next_wakeup() - now_);
    ASSERT_NE(Get<SendRegister>(), nullptr);
    version_ = 0;
    Send(RegisterEvent{Registered(State(INITIAL))});
    ASSERT_NE(Get<SendFinish>(), nullptr);
    EXPECT_TRUE(Get<SendFinish>()->stop_job);
    Send(FinishEvent{Finished(State(STOPPING))});
    EXPECT_EQ(Get<Exit>(), nullptr) << "restart " << restart;
  }
  Pass(machine_->next_wakeup() - now_);
  Send(FinishEvent{Finished(State(DONE))});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

TEST_F(SessionMachineEndTest, AChiefThatStays_SaysForWhom) {
  RunToFinal();
  Send(FinalEvent{absl::OkStatus()});
  std::vector<std::string> lines;
  for (int i = 0; i < 48; ++i) {
    ASSERT_NE(Get<SendFinish>(), nullptr);
    Send(FinishEvent{Finished(StateWithAnother(STOPPING))});
    if (std::string line = Said("waiting"); !line.empty()) {
      lines.push_back(std::move(line));
    }
    Pass(absl::Milliseconds(250));
  }
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[0], "waiting for /job:worker/task:1 to finish; 1 s so far");
}

TEST_F(SessionMachineEndTest, ChiefStaysOnlySoLong) {
  RunToFinal();
  Send(FinalEvent{absl::OkStatus()});
  const absl::Time start = now_;
  while (Get<Exit>() == nullptr && now_ - start < absl::Minutes(1)) {
    if (Get<SendFinish>() != nullptr) {
      Send(FinishEvent{Finished(State(STOPPING, 1, {7}))});
    }
    if (Get<Exit>() == nullptr) Pass(machine_->next_wakeup() - now_);
  }
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
  EXPECT_GT(now_ - start, absl::Seconds(2.5)) << "the wait for latecomers";
  EXPECT_LE(now_ - start, absl::Seconds(35.5));
}

TEST_F(SessionMachineEndTest, TriesTheFinalSaveAgainAfterALostPeer) {
  RunToFinal();
  Send(FinalEvent{absl::UnavailableError("reset")});
  ASSERT_NE(Get<SendHello>(), nullptr);
  Send(HelloEvent{0, Shard(7, 1)});
  Pass(absl::Seconds(1));
  EXPECT_NE(Get<RunFinal>(), nullptr);
}

TEST_F(SessionMachineEndTest, SavesAgainIfThePsWasRestoredBehindTheSave) {
  RunToFinal();
  Send(HelloEvent{0, Shard(8)});  // its memory is gone
  ASSERT_NE(Get<SendRegister>(), nullptr);
  Send(FinalEvent{absl::OkStatus()});
  version_ = 0;
  Send(RegisterEvent{Registered(State(INITIAL))});
  ASSERT_NE(Get<SendBeginEpoch>(), nullptr);
  BeginEpochReply begun;
  begun.set_model_epoch(2);
  Send(BeginEpochEvent{begun});
  ASSERT_NE(Get<LoadModel>(), nullptr);
  Send(LoadEvent{LoadedModel()});
  CommitEpochReply committed;
  *committed.mutable_state() = State(STOPPING, 2, {8});
  Send(CommitEvent{committed});
  EXPECT_EQ(Get<SendFinish>(), nullptr);
  EXPECT_NE(Get<RunFinal>(), nullptr);
}

// ps task 0 did not hear of the chief for too long and ended the job.
TEST_F(SessionMachineEndTest, ChiefOfAJobThatIsDoneStillTriesToSave) {
  RunToFirstStep(/*chief=*/true);
  Send(TrainEvent{StepReport()});
  Send(WatchEvent{State(DONE, 1, {7})});
  EXPECT_EQ(Get<RunFinal>(), nullptr) << "the step is under way";
  Send(StepEvent{Reply(false, 1, DONE)});
  ASSERT_NE(Get<RunFinal>(), nullptr);
  EXPECT_TRUE(Get<RunFinal>()->completed);
  Send(FinalEvent{absl::OkStatus()});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  Send(FinishEvent{FinishReply()});
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

TEST_F(SessionMachineEndTest, ChiefThatCannotSaveAnyMoreSaysSo) {
  RunToFirstStep(/*chief=*/true);
  Send(TrainEvent{StepReport()});
  Send(WatchEvent{State(DONE, 1, {7})});
  Send(StepEvent{Reply(false, 1, DONE)});
  ASSERT_NE(Get<RunFinal>(), nullptr);
  Send(FinalEvent{absl::UnavailableError("refused")});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("last save is missing"));
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("refused"));
}

TEST_F(SessionMachineEndTest, ChiefWhoseTaskHasFinishedComesBackInVain) {
  for (const bool finished : {true, false}) {
    Start(/*chief=*/true);
    Send(TickEvent{});
    Send(HelloEvent{0, Shard(17)});  // has lost its memory
    JobState state = State(DONE, 1, {7});
    WorkerState* chief = state.add_workers();
    chief->mutable_sender()->mutable_task()->set_job("worker");
    chief->set_finished(finished);
    Send(RegisterEvent{Registered(state)});
    ASSERT_NE(Get<Exit>(), nullptr);
    EXPECT_EQ(Get<Exit>()->code, finished ? kExitDone : kExitRetryable);
  }
}

TEST_F(SessionMachineEndTest, AWorkerEndsWithTheJobAlthoughAPsIsGone) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{absl::UnavailableError("reset")});
  Send(WatchEvent{State(DONE, 1, {7})});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

// With all ps tasks gone there is nobody who knows for whom to wait.
TEST_F(SessionMachineEndTest, TheWaitForAPsIsLimitedAtTheEndToo) {
  RunToFinal();
  Send(FinalEvent{absl::UnavailableError("reset")});
  for (int i = 0; i < 61 && Get<Exit>() == nullptr; ++i) {
    Send(HelloEvent{0, absl::UnavailableError("refused")});
    Pass(absl::Seconds(1));
  }
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
}

// A ps task 0 that has died is back within a few seconds, and nobody else would
// tell it that the job is over.
TEST_F(SessionMachineEndTest, ChiefTriesForSecondsToFinish) {
  RunToFinal();
  Send(FinalEvent{absl::OkStatus()});
  const absl::Time start = now_;
  while (Get<Exit>() == nullptr) {
    if (Get<SendFinish>() != nullptr) {
      Send(FinishEvent{absl::UnavailableError("refused")});
    }
    if (Get<Exit>() == nullptr) Pass(machine_->next_wakeup() - now_);
  }
  EXPECT_GE(now_ - start, absl::Seconds(5.5));
  EXPECT_LE(now_ - start, absl::Seconds(7));
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

TEST_F(SessionMachineEndTest, AChiefThatEndsDoesNotSpinForAPsThatIsGone) {
  RunToFinal();
  Send(WatchEvent{absl::UnavailableError("reset")});
  ASSERT_NE(Get<SendHello>(), nullptr);
  Send(FinalEvent{absl::OkStatus()});
  Send(HelloEvent{0, absl::UnavailableError("refused")});
  Send(SignalEvent{15});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  Pass(absl::Seconds(2));
  Send(FinishEvent{absl::UnavailableError("refused")});
  EXPECT_GT(machine_->next_wakeup(), now_);
}

TEST_F(SessionMachineEndTest, ALostReportOfASaveIsRepeatedSomeTimes) {
  RunToFirstStep(/*chief=*/true);
  int attempts = 1;
  Send(SaveReportLostEvent{3, "disk full", attempts});
  EXPECT_EQ(Get<SendSaveReport>(), nullptr) << "after a pause";
  Pass(machine_->next_wakeup() - now_);
  while (const SendSaveReport* report = Get<SendSaveReport>()) {
    EXPECT_EQ(report->save_request, 3);
    EXPECT_EQ(report->error, "disk full");
    EXPECT_EQ(report->attempt, ++attempts);
    Send(SaveReportLostEvent{3, "disk full", attempts});
    Pass(absl::Seconds(1));
  }
  EXPECT_EQ(attempts, 5);
}

// The chief has told a new start of ps task 0 that the job is over.
TEST_F(SessionMachineEndTest, AStepThatNobodyWantsAnyMoreHoldsNobodyUp) {
  for (const bool chief_has_finished : {false, true}) {
    RunToFirstStep(/*chief=*/false);
    Send(TrainEvent{StepReport()});
    Send(StepEvent{absl::UnavailableError("reset")});
    ASSERT_NE(Get<SendHello>(), nullptr);
    Send(HelloEvent{0, Shard(8)});
    Pass(absl::Seconds(1));
    ASSERT_NE(Get<SendRegister>(), nullptr);
    JobState state = State(STOPPING);
    WorkerState* chief = state.add_workers();
    chief->mutable_sender()->mutable_task()->set_job("worker");
    chief->set_finished(chief_has_finished);
    Send(RegisterEvent{Registered(state)});
    EXPECT_EQ(Get<SendFinish>() != nullptr, chief_has_finished);
  }
}

// A ps task was lost and restored meanwhile: the report is of an epoch that is
// gone.
TEST_F(SessionMachineEndTest,
       AWorkerBackInAJobThatStops_LeavesTheSaveToItsChief) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  Send(StepEvent{absl::UnavailableError("reset")});
  Send(HelloEvent{0, Shard(8, 2)});
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<SendRegister>(), nullptr);
  JobState state = State(STOPPING, 2, {8});
  WorkerState* chief = state.add_workers();
  chief->mutable_sender()->mutable_task()->set_job("worker");
  Send(RegisterEvent{Registered(state)});
  EXPECT_EQ(Get<RunFinal>(), nullptr);
  ASSERT_NE(Get<SendFinish>(), nullptr);
}

TEST_F(SessionMachineEndTest, FatalErrorInAStepEndsTheWorker) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{absl::OutOfRangeError("loss is nan")});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_FALSE(Get<SendFinish>()->stop_job);
  Send(FinishEvent{FinishReply()});
  EXPECT_EQ(Get<Exit>()->code, kExitFailed);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("loss is nan"));
}

}  // namespace
}  // namespace muster
