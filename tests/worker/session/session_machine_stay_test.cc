#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/process/exit_code.h"
#include "tests/worker/session/session_machine_fixture.h"
#include "worker/session/session_machine.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// The time between a worker's last step and the chief's last save.
class SessionMachineStayTest : public SessionMachineTest {
 protected:
  // The state of a job with the chief and this worker.
  JobState StateOfTwo(JobPhase phase) {
    JobState state = State(phase, 1, {7});
    for (int i = 0; i < 2; ++i) {
      Sender* const sender = state.add_workers()->mutable_sender();
      sender->mutable_task()->set_job("worker");
      sender->mutable_task()->set_index(i);
      sender->set_incarnation(10 + i);
    }
    return state;
  }

  // In which this worker is known to take no more steps.
  JobState StateOfStay() {
    JobState state = StateOfTwo(STOPPING);
    state.mutable_workers(1)->set_finished(true);
    return state;
  }

  // To the message that this worker stays.
  void RunToEnd() {
    RunToFirstStep(/*chief=*/false);
    Send(TrainEvent{StepReport()});
    Send(WatchEvent{StateOfTwo(STOPPING)});
    Send(StepEvent{Reply(false, 1, STOPPING)});
    ASSERT_NE(Get<SendFinish>(), nullptr);
    EXPECT_TRUE(Get<SendFinish>()->stays);
    EXPECT_EQ(Get<SendFinish>()->model_epoch, 1);
    EXPECT_EQ(Get<SendFinish>()->ps_incarnation, 7u);
  }

  void RunToStay() {
    RunToEnd();
    Send(FinishEvent{Finished(StateOfStay())});
    EXPECT_TRUE(actions_.empty());
  }

  // It says that it leaves, and does.
  void ExpectLeaves() {
    ASSERT_NE(Get<SendFinish>(), nullptr);
    EXPECT_EQ(Get<SendFinish>()->reason, "done");
    EXPECT_FALSE(Get<SendFinish>()->stays);
    Send(FinishEvent{Finished(State(DONE))});
    ASSERT_NE(Get<Exit>(), nullptr);
    EXPECT_EQ(Get<Exit>()->code, kExitDone);
  }
};

TEST_F(SessionMachineStayTest, AWorkerLeavesWhenTheChiefHasFinished) {
  RunToStay();
  Pass(machine_->next_wakeup() - now_);
  ASSERT_NE(Get<Say>(), nullptr);
  EXPECT_THAT(Get<Say>()->text,
              HasSubstr("waiting for /job:worker/task:0 to save"));
  JobState state = StateOfStay();
  state.mutable_workers(0)->set_finished(true);
  Send(WatchEvent{state});
  ExpectLeaves();
}

TEST_F(SessionMachineStayTest, AWorkerStaysForTheNextStartOfAnUnsavedChief) {
  RunToStay();
  JobState state = StateOfStay();
  state.mutable_workers(0)->set_finished(true);
  state.mutable_workers(0)->set_awaited(true);
  Send(WatchEvent{state});
  EXPECT_EQ(Get<SendFinish>(), nullptr);
  state.set_state_version(++version_);
  state.mutable_workers(0)->set_awaited(false);
  Send(WatchEvent{state});
  ExpectLeaves();
}

TEST_F(SessionMachineStayTest, AWorkerDoesNotStayForALostChief) {
  RunToStay();
  JobState state = StateOfStay();
  state.mutable_workers(0)->set_lost(true);
  Send(WatchEvent{state});
  ExpectLeaves();
}

TEST_F(SessionMachineStayTest, AWorkerStaysForALostChiefThatHasToSave) {
  RunToStay();
  JobState state = StateOfStay();
  state.set_unsaved(true);
  state.mutable_workers(0)->set_lost(true);
  Send(WatchEvent{state});
  EXPECT_EQ(Get<SendFinish>(), nullptr);
  state.set_state_version(++version_);
  state.mutable_workers(0)->set_lost(false);
  Send(WatchEvent{state});
  EXPECT_EQ(Get<SendFinish>(), nullptr);
  state.set_state_version(++version_);
  state.mutable_workers(0)->set_finished(true);
  state.set_unsaved(false);
  Send(WatchEvent{state});
  ExpectLeaves();
}

TEST_F(SessionMachineStayTest, AWorkerOfAJobThatEndedUnsavedIsNotDone) {
  RunToStay();
  JobState state = State(DONE, 1, {7});
  state.set_unsaved(true);
  Send(WatchEvent{state});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("without its last save"));
}

TEST_F(SessionMachineStayTest, ALostChiefIsWaitedForOnlySoLong) {
  RunToStay();
  JobState state = StateOfStay();
  state.set_unsaved(true);
  state.mutable_workers(0)->set_lost(true);
  Send(WatchEvent{state});
  Pass(absl::Seconds(59));
  EXPECT_EQ(Get<Exit>(), nullptr);
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
  EXPECT_THAT(Get<Exit>()->text,
              HasSubstr("/job:worker/task:0, which is lost"));
}

// The steps that the chief had not saved are gone with the ps.
TEST_F(SessionMachineStayTest, AWorkerThatStayedTrainsAgainAfterARestore) {
  RunToStay();
  Send(WatchEvent{absl::UnavailableError("reset")});
  ASSERT_NE(Get<SendHello>(), nullptr);
  Send(HelloEvent{0, Shard(8)});
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<SendRegister>(), nullptr);
  version_ = 0;
  Send(RegisterEvent{Registered(State(INITIAL))});
  EXPECT_EQ(Get<Exit>(), nullptr);
  Send(WatchEvent{State(RUNNING, 2, {8})});
  EXPECT_NE(Get<EnterEpoch>(), nullptr);
  ASSERT_NE(Get<SendStep>(), nullptr);
  Send(StepEvent{Reply(true, 2)});
  EXPECT_NE(Get<TrainStep>(), nullptr);
}

// Another ps was lost: ps task 0, which knows this worker, goes on.
TEST_F(SessionMachineStayTest, AWorkerTrainsAgainInANewEpochOfTheSamePs) {
  RunToStay();
  Send(WatchEvent{State(INITIAL)});
  EXPECT_EQ(Get<SendFinish>(), nullptr);
  Send(WatchEvent{State(RUNNING, 2, {7})});
  EXPECT_NE(Get<SendStep>(), nullptr);
}

TEST_F(SessionMachineStayTest, ASignalEndsTheStayAtOnce) {
  RunToStay();
  Send(SignalEvent{15});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_FALSE(Get<SendFinish>()->stays);
  Send(FinishEvent{Finished(StateOfStay())});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, 143);
}

TEST_F(SessionMachineStayTest, ALostAnswerIsAskedForAgain) {
  RunToEnd();
  Send(FinishEvent{absl::UnavailableError("reset")});
  EXPECT_EQ(Get<Exit>(), nullptr);
  ASSERT_NE(Get<SendHello>(), nullptr);
  Send(HelloEvent{0, Shard(7, 1)});
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_TRUE(Get<SendFinish>()->stays);
}

TEST_F(SessionMachineStayTest, AnAnswerThatDoesNotKnowOfItIsAskedLater) {
  RunToEnd();
  Send(FinishEvent{Finished(StateOfTwo(STOPPING))});
  EXPECT_EQ(Get<SendFinish>(), nullptr) << "it would go round and round";
  Pass(machine_->next_wakeup() - now_);
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_TRUE(Get<SendFinish>()->stays);
}

// ps task 0 tells if the chief is lost. Without ps task 0 nobody does, and it
// has most probably left at the end.
TEST_F(SessionMachineStayTest, ALongSaveIsWaitedForALostPsOnlySoLong) {
  RunToStay();
  for (int i = 0; i < 100; ++i) Pass(absl::Seconds(10));
  EXPECT_EQ(Get<Exit>(), nullptr);
  Send(WatchEvent{absl::UnavailableError("reset")});
  for (int i = 0; i < 19; ++i) {
    Send(HelloEvent{0, absl::UnavailableError("refused")});
    Pass(absl::Seconds(1));
    ASSERT_EQ(Get<Exit>(), nullptr) << i;
  }
  Send(HelloEvent{0, absl::UnavailableError("refused")});
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

TEST_F(SessionMachineStayTest, AChiefIsToldThatTheOthersHaveLeft) {
  RunToFinal();
  Send(FinalEvent{absl::OkStatus()});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  Send(FinishEvent{Finished(StateWithAnother(STOPPING))});
  EXPECT_EQ(Get<Exit>(), nullptr);
  Send(WatchEvent{State(DONE, 1, {7})});
  ASSERT_NE(Get<Exit>(), nullptr) << "it need not ask";
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

}  // namespace
}  // namespace muster
