// A training that comes back to ps tasks that keep serving.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/worker/session/session_machine_fixture.h"
#include "worker/session/session_machine.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class SessionMachineGoOnTest : public SessionMachineTest {
 protected:
  SessionMachineGoOnTest() { goal_.stop.set_steps(20); }

  static HelloReply Ready(uint64_t incarnation, int64_t epoch) {
    HelloReply reply = Shard(incarnation, epoch);
    reply.mutable_state()->set_phase(READY);
    return reply;
  }

  JobState Done(int64_t steps) {
    JobState state = State(DONE, 1, {7});
    state.set_may_go_on(true);
    state.set_stop_reason("steps");
    state.set_global_step(steps);
    return state;
  }

  // To the registration by which the job goes on.
  void Reopen(bool chief) {
    Start(chief);
    Send(TickEvent{});
    Send(HelloEvent{0, Ready(7, 1)});
    ASSERT_NE(Get<SendRegister>(), nullptr);
    EXPECT_FALSE(Get<SendRegister>()->goes_on);
    Send(RegisterEvent{Registered(Done(19))});
    ASSERT_NE(Get<SendRegister>(), nullptr);
    EXPECT_TRUE(Get<SendRegister>()->goes_on);
  }

  JobState Reopened(int64_t steps) {
    JobState state = State(INITIAL, 1, {7});
    state.set_global_step(steps);
    return state;
  }
};

TEST_F(SessionMachineGoOnTest, TheChiefCommitsWhatTheShardsHold) {
  saves_ = true;
  saved_step_ = 12;
  Reopen(/*chief=*/true);
  Send(RegisterEvent{Registered(Reopened(19))});
  ASSERT_NE(Get<SendCommit>(), nullptr);
  EXPECT_TRUE(Get<SendCommit>()->resumes);
  EXPECT_EQ(Get<SendCommit>()->model_epoch, 1);
  EXPECT_EQ(Get<LoadModel>(), nullptr);
  EXPECT_THAT(Said("going on from step 19"),
              HasSubstr("--train_dir has step 12, which is passed over"));
  CommitEpochReply committed;
  *committed.mutable_state() = State(RUNNING, 1, {7});
  Send(CommitEvent{committed});
  ASSERT_NE(Get<EnterEpoch>(), nullptr);
  ASSERT_NE(Get<SendStep>(), nullptr);
}

// ---- A job that runs on, with the stop of an earlier start of the chief
// ------

TEST_F(SessionMachineGoOnTest, AnotherStop_IsToldBeforeTheChiefTakesAStep) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, Ready(7, 1)});
  JobState running = State(RUNNING, 1, {7});
  running.mutable_stop()->set_steps(10);
  Send(RegisterEvent{Registered(running)});
  ASSERT_NE(Get<SendCommit>(), nullptr);
  EXPECT_TRUE(Get<SendCommit>()->resumes);
  EXPECT_EQ(Get<SendCommit>()->model_epoch, 1);
  EXPECT_EQ(Get<EnterEpoch>(), nullptr);
  CommitEpochReply told;
  *told.mutable_state() = State(RUNNING, 1, {7});
  told.mutable_state()->mutable_stop()->set_steps(20);
  Send(CommitEvent{told});
  EXPECT_EQ(Get<SendCommit>(), nullptr);
  ASSERT_NE(Get<EnterEpoch>(), nullptr);
  ASSERT_NE(Get<SendStep>(), nullptr);
}

TEST_F(SessionMachineGoOnTest, TheSameStop_OrAnotherWorkers_IsNotTold) {
  for (const bool chief : {true, false}) {
    Start(chief);
    Send(TickEvent{});
    Send(HelloEvent{0, Ready(7, 1)});
    JobState running = State(RUNNING, 1, {7});
    running.mutable_stop()->set_steps(chief ? 20 : 10);
    Send(RegisterEvent{Registered(running)});
    EXPECT_EQ(Get<SendCommit>(), nullptr);
    EXPECT_NE(Get<EnterEpoch>(), nullptr);
  }
}

TEST_F(SessionMachineGoOnTest, AnotherStopOfAJobThatEnds_IsNotTold) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, Ready(7, 1)});
  JobState stopping = State(STOPPING, 1, {7});
  stopping.mutable_stop()->set_steps(10);
  Send(RegisterEvent{Registered(stopping)});
  EXPECT_EQ(Get<SendCommit>(), nullptr);
}

TEST_F(SessionMachineGoOnTest, AWorkerWaitsForTheChief) {
  Reopen(/*chief=*/false);
  Send(RegisterEvent{Registered(Reopened(19))});
  EXPECT_EQ(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<SendCommit>(), nullptr);
  Pass(absl::Seconds(2));
  EXPECT_NE(Said("/job:worker/task:0 to initialize or restore"), "");
}

TEST_F(SessionMachineGoOnTest, AWorkerOfAny_SaysHowTheChiefIsStarted) {
  takes_any_worker_ = true;
  Reopen(/*chief=*/false);
  Send(RegisterEvent{Registered(Reopened(19))});
  Pass(absl::Seconds(2));
  EXPECT_NE(Said("/job:worker/task:0, which is started with --task_index=0, "
                 "to initialize or restore"),
            "");
}

TEST_F(SessionMachineGoOnTest, AShardThatLostItsModelIsRestored) {
  Reopen(/*chief=*/true);
  JobState state = Reopened(19);
  (*state.mutable_ps_incarnations())[0] = 6;
  Send(RegisterEvent{Registered(state)});
  EXPECT_NE(Get<SendBeginEpoch>(), nullptr);
}

TEST_F(SessionMachineGoOnTest, AnotherModelIsNotTouched) {
  Reopen(/*chief=*/true);
  JobState state = Reopened(19);
  state.set_fingerprint(kFingerprint + 1);
  Send(RegisterEvent{Registered(state)});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitBadConfig);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("hold another model"));
}

TEST_F(SessionMachineGoOnTest, WhoHasReachedItsGoalIsDone) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, Ready(7, 1)});
  Send(RegisterEvent{Registered(Done(20))});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

TEST_F(SessionMachineGoOnTest, AsksBeforeItReplacesWhatMayBeAnothersTask) {
  asks_before_takeover_ = true;
  Start(/*chief=*/true);
  Send(TickEvent{});
  HelloReply taken = Ready(7, 1);
  taken.set_takeover(5);
  Send(HelloEvent{0, taken});
  EXPECT_EQ(Get<SendHello>(), nullptr);
  ASSERT_NE(Get<SendRegister>(), nullptr);
  EXPECT_TRUE(Get<SendRegister>()->asks_only);
  Send(RegisterEvent{Registered(State(RUNNING, 1, {7}))});
  ASSERT_NE(Get<SendHello>(), nullptr);
  EXPECT_EQ(Get<SendHello>()->takeover, 5);

  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, taken});
  Send(RegisterEvent{absl::InvalidArgumentError("another job has it")});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitBadConfig);
  EXPECT_FALSE(Get<Exit>()->is_replaced);
  EXPECT_EQ(Get<SendHello>(), nullptr);
}

TEST_F(SessionMachineGoOnTest, WhoseNumberAnotherHas_ReplacesItNowhere) {
  asks_before_takeover_ = true;
  Start(/*chief=*/false);
  Send(TickEvent{});
  HelloReply taken = Ready(7, 1);
  taken.set_takeover(5);
  Send(HelloEvent{0, taken});
  Send(RegisterEvent{FencedError("another worker was given this index, too",
                                 ErrorReason::kReplaced)});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_TRUE(Get<Exit>()->is_replaced);
  EXPECT_EQ(Get<SendHello>(), nullptr);
}

}  // namespace
}  // namespace muster
