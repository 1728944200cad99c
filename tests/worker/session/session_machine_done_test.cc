#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/time.h"
#include "common/base/stopped_error.h"
#include "common/process/exit_code.h"
#include "tests/worker/session/session_machine_fixture.h"
#include "worker/session/session_machine.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// A task that is done before its job is.
class SessionMachineDoneTest : public SessionMachineTest {
 protected:
  // Reports the step that is under way, and takes no other.
  void ReportLast() {
    Send(TrainEvent{StepReport()});
    ASSERT_NE(Get<SendStep>(), nullptr);
    EXPECT_EQ(Get<SendStep>()->report.step, 1);
    EXPECT_TRUE(Get<SendStep>()->is_done);
  }
  void ExpectLeaves() {
    ASSERT_NE(Get<SendFinish>(), nullptr);
    EXPECT_EQ(Get<SendFinish>()->reason, "done");
    EXPECT_FALSE(Get<SendFinish>()->stop_job);
    EXPECT_FALSE(Get<SendFinish>()->stays);
    Send(FinishEvent{Finished(State(RUNNING, 1, {7}))});
    ASSERT_NE(Get<Exit>(), nullptr);
    EXPECT_EQ(Get<Exit>()->code, kExitDone);
  }
  // The chief is done beside worker 1, and knows that it takes no step.
  void RunToStay() {
    RunToFirstStep(/*chief=*/true);
    Send(WatchEvent{StateWithAnother(RUNNING)});
    Send(LeaveEvent{});
    ReportLast();
    EXPECT_EQ(Get<SendStep>()->stop_reason, "");
    Send(StepEvent{Reply(false, 1)});
  }
  // An idle chief greets each second.
  void Answer(JobPhase phase) {
    Send(StepEvent{Reply(false, 1, phase)});
    if (Get<SendHello>() != nullptr) Send(HelloEvent{0, Shard(7, 1)});
  }
  void FinishTheOther() {
    JobState state = StateWithAnother(RUNNING);
    state.mutable_workers(0)->set_finished(true);
    Send(WatchEvent{state});
  }
  // The job ends, since all are done.
  void ExpectEndsTheJob() {
    ASSERT_NE(Get<SendStep>(), nullptr);
    EXPECT_EQ(Get<SendStep>()->stop_reason, "done");
    Answer(STOPPING);
    JobState state = State(STOPPING, 1, {7});
    state.set_stop_reason("done");
    Send(WatchEvent{state});
    ASSERT_NE(Get<RunFinal>(), nullptr);
    EXPECT_TRUE(Get<RunFinal>()->completed);
    EXPECT_EQ(Get<RunFinal>()->stop_reason, "done");
    Send(FinalEvent{absl::OkStatus()});
    ASSERT_NE(Get<SendFinish>(), nullptr);
    Send(FinishEvent{Finished(State(DONE, 1, {7}))});
    ASSERT_NE(Get<Exit>(), nullptr);
    EXPECT_EQ(Get<Exit>()->code, kExitDone);
  }
};

TEST_F(SessionMachineDoneTest, AWorker_ReportsItsStepAndLeavesTheOthers) {
  RunToFirstStep(/*chief=*/false);
  Send(LeaveEvent{});
  EXPECT_TRUE(actions_.empty());
  ReportLast();
  Send(StepEvent{Reply(false, 1)});
  ExpectLeaves();
}

TEST_F(SessionMachineDoneTest, AWorkerThatAnOperatorDrains_LeavesWithZero) {
  RunToFirstStep(/*chief=*/false);
  JobState state = StateWithSelf(1, 7, 0);
  state.mutable_workers(0)->set_is_drained(true);
  Send(WatchEvent{state});
  EXPECT_NE(Said("an operator drains this task"), "");
  ReportLast();
  Send(StepEvent{Reply(false, 1)});
  ExpectLeaves();
}

TEST_F(SessionMachineDoneTest, AnotherThatIsDrained_ConcernsNobodyElse) {
  RunToFirstStep(/*chief=*/true);
  JobState state = StateWithAnother(RUNNING);
  state.mutable_workers(0)->set_is_drained(true);
  Send(WatchEvent{state});
  Send(TrainEvent{StepReport()});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_FALSE(Get<SendStep>()->is_done);
}

TEST_F(SessionMachineDoneTest, AWorkerWhoseStepIsGivenUp_ReturnsIt) {
  RunToFirstStep(/*chief=*/false);
  Send(LeaveEvent{});
  Send(TrainEvent{StoppedError("step 1")});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_TRUE(Get<SendStep>()->report.abandoned);
  Send(StepEvent{Reply(false, 1)});
  ExpectLeaves();
}

TEST_F(SessionMachineDoneTest, AWorkerThatWaitsForTheChief_Leaves) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7)});
  Send(RegisterEvent{Registered(State(INITIAL))});
  Send(LeaveEvent{});
  ExpectLeaves();
}

TEST_F(SessionMachineDoneTest, AWorkerWhosePsIsLost_ReportsWhenItIsBack) {
  RunToFirstStep(/*chief=*/false);
  Send(LeaveEvent{});
  Send(TrainEvent{absl::UnavailableError("reset"), /*may_resume=*/true});
  EXPECT_EQ(Get<SendFinish>(), nullptr);
  Send(HelloEvent{0, Shard(7, 1)});
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<ResumeStep>(), nullptr);
  ReportLast();
  Send(StepEvent{Reply(false, 1)});
  ExpectLeaves();
}

TEST_F(SessionMachineDoneTest, AWorkerOfAJobThatStops_StaysForTheLastSave) {
  RunToFirstStep(/*chief=*/false);
  Send(LeaveEvent{});
  ReportLast();
  JobState state = State(STOPPING, 1, {7});
  state.set_unsaved(true);
  Send(WatchEvent{state});
  Send(StepEvent{Reply(false, 1, STOPPING)});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_TRUE(Get<SendFinish>()->stays);
}

TEST_F(SessionMachineDoneTest, AChiefAlone_EndsTheJobWithItsLastStep) {
  RunToFirstStep(/*chief=*/true);
  Send(LeaveEvent{});
  ReportLast();
  ExpectEndsTheJob();
}

TEST_F(SessionMachineDoneTest, AChief_StaysUntilTheOthersAreDone) {
  RunToStay();
  Pass(absl::Minutes(10));
  EXPECT_EQ(Get<Exit>(), nullptr) << "longer than --max_wait";
  EXPECT_EQ(Get<TrainStep>(), nullptr);
  Answer(RUNNING);
  FinishTheOther();
  ExpectEndsTheJob();
}

TEST_F(SessionMachineDoneTest, AChief_SaysForWhomItStays) {
  RunToFirstStep(/*chief=*/true);
  Send(WatchEvent{StateWithAnother(RUNNING)});
  Send(LeaveEvent{});
  EXPECT_THAT(Said("this task is done"),
              HasSubstr("it stays until /job:worker/task:1 are"));
}

TEST_F(SessionMachineDoneTest, AChiefThatWasGrantedAStep_ReturnsIt) {
  RunToFirstStep(/*chief=*/true);
  Send(WatchEvent{StateWithAnother(RUNNING)});
  Send(TrainEvent{StepReport()});
  Send(LeaveEvent{});
  Send(StepEvent{Reply(true, 1)});
  EXPECT_EQ(Get<TrainStep>(), nullptr);
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.step, 0);
  EXPECT_TRUE(Get<SendStep>()->is_done);
}

TEST_F(SessionMachineDoneTest, AChief_RestoresForTheOthersAndStays) {
  RunToStay();
  JobState state = StateWithAnother(RUNNING);
  state.set_model_epoch(2);
  Send(WatchEvent{state});
  ASSERT_NE(Get<EnterEpoch>(), nullptr);
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_TRUE(Get<SendStep>()->is_done);
  EXPECT_EQ(Get<SendStep>()->stop_reason, "");
}

TEST_F(SessionMachineDoneTest,
       AChief_WaitsAWhileForListedWorkersThatDidNotCome) {
  listed_workers_ = 2;
  RunToFirstStep(/*chief=*/true);
  Send(LeaveEvent{});
  ReportLast();
  EXPECT_EQ(Get<SendStep>()->stop_reason, "");
  Answer(RUNNING);
  Pass(absl::Seconds(9));
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->stop_reason, "");
  Answer(RUNNING);
  Pass(absl::Seconds(1));
  ExpectEndsTheJob();
}

TEST_F(SessionMachineDoneTest, ASignalOfAChiefThatStays_EndsTheJob) {
  RunToStay();
  Send(SignalEvent{15});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->stop_reason, "interrupted");
}

}  // namespace
}  // namespace muster
