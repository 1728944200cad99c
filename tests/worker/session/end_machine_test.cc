#include "worker/session/end_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cluster/task_id.h"
#include "common/rpc/error_reason.h"
#include "worker/client/call_status.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Time kNow = absl::UnixEpoch();

EndMachine::Options Task(int index) {
  EndMachine::Options options;
  options.self = MakeTaskId("worker", index);
  options.chief = index == 0;
  options.chief_task = MakeTaskId("worker", 0);
  options.saves = true;
  return options;
}

JobState Job(JobPhase phase, const std::string& stop_reason = "steps") {
  JobState state;
  state.set_phase(phase);
  state.set_stop_reason(stop_reason);
  state.set_model_epoch(1);
  state.set_global_step(1000);
  return state;
}

WorkerState* AddWorker(JobState* state, int index, uint64_t incarnation) {
  WorkerState* const worker = state->add_workers();
  *worker->mutable_sender()->mutable_task() = MakeTaskId("worker", index);
  worker->mutable_sender()->set_incarnation(incarnation);
  return worker;
}

FinishReply Finished(JobPhase phase) {
  FinishReply reply;
  reply.mutable_state()->set_phase(phase);
  return reply;
}

TEST(EndMachineTest, WaitsOnlyForLiveWorkers) {
  JobState state;
  AddWorker(&state, 0, 1);  // Itself.
  AddWorker(&state, 1, 2)->set_finished(true);
  WorkerState* const live = AddWorker(&state, 2, 3);
  AddWorker(&state, 3, 0);  // From a manifest.
  const auto unfinished = UnfinishedOthers(state, MakeTaskId("worker", 0));
  ASSERT_EQ(unfinished.size(), 1);
  EXPECT_EQ(unfinished[0].index(), 2);
  live->set_lost(true);
  EXPECT_THAT(UnfinishedOthers(state, MakeTaskId("worker", 0)), IsEmpty());
}

TEST(EndMachineTest, AWorkerIsDoneWithItsFinish) {
  EndMachine end(Task(1));
  EXPECT_FALSE(end.is_leaving());
  const SendFinish finish = end.FinishDone();
  EXPECT_EQ(finish.reason, "done");
  EXPECT_FALSE(finish.stop_job);
  EXPECT_TRUE(end.is_leaving());
  const auto exit = end.OnFinished(Finished(STOPPING), kNow);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, kExitDone);
}

TEST(EndMachineTest, AChiefLooksUntilTheJobIsDone) {
  EndMachine end(Task(0));
  end.Save(/*completed=*/true, "steps");
  end.OnSaved(absl::OkStatus());
  EXPECT_FALSE(end.FinishCompleted().unsaved);
  EXPECT_FALSE(end.OnFinished(Finished(STOPPING), kNow).has_value());
  EXPECT_FALSE(end.ExitOfSeenEnd(Job(STOPPING)).has_value());
  EXPECT_TRUE(end.ExitOfSeenEnd(Job(DONE)).has_value());
  EXPECT_TRUE(
      end.OnFinished(Finished(STOPPING), kNow + absl::Minutes(1)).has_value());
}

TEST(EndMachineTest, AFailedSaveIsInTheFinishAndTheExit) {
  EndMachine end(Task(0));
  end.Save(/*completed=*/true, "steps");
  end.OnSaved(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_FALSE(end.IsCompleted());
  EXPECT_TRUE(end.FinishCompleted().unsaved);
  const auto exit = end.OnFinished(Finished(STOPPING), kNow);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, kExitRetryable);
  EXPECT_THAT(exit->text, HasSubstr("the disk is full; the ps tasks keep"));
}

TEST(EndMachineTest, AFolderThatIsAnothersAtTheEnd_EndsWithThree) {
  EndMachine end(Task(0));
  end.Save(/*completed=*/true, "steps");
  end.OnSaved(OfFile(absl::AlreadyExistsError("another process")));
  end.FinishCompleted();
  const auto exit = end.OnFinished(Finished(STOPPING), kNow);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, kExitBadCheckpoint);
}

TEST(EndMachineTest, AChiefThatFailsEndsTheJob) {
  EndMachine end(Task(0));
  const SendFinish finish = end.FinishFailed({kExitFailed, "no device"});
  EXPECT_EQ(finish.reason, "failed: no device");
  EXPECT_TRUE(finish.stop_job);
  EXPECT_FALSE(EndMachine(Task(1)).FinishFailed({1, ""}).stop_job);
}

TEST(EndMachineTest, ASignalledChiefSaysWhoSignalled) {
  EndMachine end(Task(0));
  end.OnSignal(15, kNow);
  EXPECT_EQ(end.drain_until(), kNow + absl::Seconds(5));
  end.GiveUpSave();
  const SendFinish finish = end.FinishSignalled();
  EXPECT_EQ(finish.reason, "interrupted");
  EXPECT_TRUE(finish.unsaved);
  const auto exit =
      end.OnFinished(absl::UnavailableError("ps task 0 is gone"), kNow);
  ASSERT_TRUE(exit.has_value()) << "nobody waits for another attempt";
  EXPECT_EQ(exit->code, 128 + 15);
}

TEST(EndMachineTest, AChiefTriesLongerThanAWorker) {
  const absl::Status gone = absl::UnavailableError("ps task 0 is gone");
  std::vector<int> attempts;
  for (const int index : {1, 0}) {
    EndMachine end(Task(index));
    end.FinishDone();
    int count = 1;
    while (!end.OnFinished(gone, kNow).has_value()) ++count;
    attempts.push_back(count);
  }
  EXPECT_THAT(attempts, ElementsAre(3, 10));
}

TEST(EndMachineTest, AChiefTellsANewPsThatTheJobIsOver) {
  EndMachine end(Task(0));
  end.FinishDone();
  EXPECT_FALSE(
      end.OnFinished(absl::NotFoundError("who is that?"), kNow).has_value());
  EXPECT_TRUE(end.must_register());
  EXPECT_FALSE(end.OnRegisteredAgain(absl::OkStatus(), /*must_confirm=*/false)
                   .has_value());
  EXPECT_FALSE(end.must_register());
  EXPECT_TRUE(end.RepeatFinish().stop_job);
}

TEST(EndMachineTest, ANewerStartTakesOverASuccessOnly) {
  const absl::Status replaced =
      FencedError("a newer start", ErrorReason::kReplaced);
  EndMachine done(Task(1));
  done.FinishDone();
  EXPECT_EQ(done.OnFinished(replaced, kNow)->code, kExitFailed);
  EndMachine failed(Task(1));
  failed.FinishFailed({kExitBadConfig, "wrong"});
  EXPECT_FALSE(failed.OnFinished(replaced, kNow).has_value());
}

TEST(EndMachineTest, AFinishedTrainingIsSaidOnce) {
  EndMachine end(Task(1));
  end.OnRegistered(Job(STOPPING));
  EXPECT_EQ(end.SayFinishedBefore(Job(STOPPING)),
            "the training was finished already: step 1000, by stop.steps");
  EXPECT_EQ(end.SayFinishedBefore(Job(STOPPING)), "");
}

TEST(EndMachineTest, ATaskThatHasBegunAStepIsNotToldOfAFinishedTraining) {
  EndMachine end(Task(1));
  end.OnRegistered(Job(RUNNING));
  end.OnStepBegun();
  EXPECT_EQ(end.SayFinishedBefore(Job(STOPPING)), "");
}

TEST(EndMachineTest, AnUnsavedEndIsTriedAgain) {
  EndMachine end(Task(1));
  end.OnRegistered(Job(RUNNING));
  JobState state = Job(DONE);
  EXPECT_EQ(end.ExitOfDoneJob(state)->code, kExitDone);
  state.set_unsaved(true);
  EXPECT_EQ(end.ExitOfDoneJob(state)->code, kExitRetryable);
  EXPECT_THAT(end.ExitOfDoneJob(state)->text,
              HasSubstr("as /job:worker/task:0 did not come back"));
}

TEST(EndMachineTest, AChiefSavesAJobThatIsDoneWithoutItsSave) {
  EndMachine::Options options = Task(0);
  EndMachine unsaved(options);
  unsaved.OnRegistered(Job(RUNNING));
  JobState state = Job(DONE);
  AddWorker(&state, 0, 1)->set_finished(true);
  EXPECT_FALSE(unsaved.ExitOfDoneJob(state).has_value());
  options.saved_step = state.global_step();
  EndMachine saved(options);
  saved.OnRegistered(Job(RUNNING));
  EXPECT_EQ(saved.ExitOfDoneJob(state)->code, kExitDone);
}

TEST(EndMachineTest, WhoComesTooLateForItsOwnGoalSaysSo) {
  EndMachine::Options options = Task(1);
  options.goal.stop.set_steps(2000);
  const auto exit = EndMachine(options).ExitOfDoneJob(Job(DONE));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, kExitBadConfig);
  EXPECT_THAT(exit->text, HasSubstr("stop.steps 2000"));
  EXPECT_EQ(EndMachine(options).ExitOfDoneJob(Job(DONE, "interrupted"))->code,
            kExitRetryable);
}

TEST(EndMachineTest, ADivergedModelIsNotSaved) {
  EndMachine end(Task(0));
  end.OnStop({"non_finite", absl::InternalError("the loss is nan")});
  EXPECT_TRUE(end.Save(/*completed=*/true, "non_finite").failed);
  end.OnSaved(absl::OkStatus());
  end.FinishCompleted();
  EXPECT_EQ(end.OnFinished(Finished(STOPPING), kNow)->text, "the loss is nan");
}

}  // namespace
}  // namespace muster
