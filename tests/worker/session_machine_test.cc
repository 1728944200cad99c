#include "worker/session_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/rpc/protocol.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kFingerprint = 99;

// Drives a machine with a clock of its own; keeps the actions of the last
// event, or of all events since Clear.
class SessionMachineTest : public ::testing::Test {
 protected:
  void Start(bool chief, int ps_tasks = 1) {
    SessionMachine::Options options;
    options.self.set_job("worker");
    options.self.set_index(chief ? 0 : 1);
    options.chief = chief;
    options.chief_task.set_job("worker");
    options.model_fingerprint = kFingerprint;
    options.max_wait = absl::Seconds(60);
    for (int i = 0; i < ps_tasks; ++i) {
      options.ps_addresses.push_back(absl::StrCat("host", i, ":2222"));
    }
    machine_ = std::make_unique<SessionMachine>(options);
  }

  void Send(SessionEvent event) {
    actions_.clear();
    for (auto& action : machine_->Handle(event, now_)) {
      actions_.push_back(std::move(action));
    }
  }
  void Pass(absl::Duration duration) {
    now_ += duration;
    Send(TickEvent{});
  }

  // The action of this type in the last answer; null if there is none.
  template <typename T>
  const T* Get() const {
    for (const SessionAction& action : actions_) {
      if (const T* found = std::get_if<T>(&action)) return found;
    }
    return nullptr;
  }

  static HelloReply Shard(uint64_t incarnation, int64_t epoch = 0) {
    HelloReply reply;
    reply.set_protocol_version(kProtocolVersion);
    reply.set_ps_incarnation(incarnation);
    reply.mutable_state()->set_model_epoch(epoch);
    return reply;
  }

  JobState State(JobPhase phase, int64_t epoch = 0,
                 std::vector<uint64_t> incarnations = {}) {
    JobState state;
    state.set_state_version(++version_);
    state.set_phase(phase);
    state.set_model_epoch(epoch);
    state.set_fingerprint(kFingerprint);
    for (size_t i = 0; i < incarnations.size(); ++i) {
      (*state.mutable_ps_incarnations())[i] = incarnations[i];
    }
    return state;
  }

  RegisterReply Registered(const JobState& state, int64_t position = 0) {
    RegisterReply reply;
    *reply.mutable_state() = state;
    reply.set_data_position(position);
    return reply;
  }

  StepReply Reply(bool granted, int64_t epoch, JobPhase phase = RUNNING) {
    StepReply reply;
    reply.set_granted(granted);
    reply.set_phase(phase);
    reply.set_model_epoch(epoch);
    reply.set_state_version(version_);
    return reply;
  }

  // To the first granted step of a worker in epoch 1.
  void RunToFirstStep(bool chief) {
    Start(chief);
    Send(TickEvent{});
    Send(HelloEvent{0, Shard(7, 1)});
    Send(RegisterEvent{Registered(State(RUNNING, 1, {7}), 5)});
    ASSERT_NE(Get<SendStep>(), nullptr);
    Send(StepEvent{Reply(true, 1)});
    ASSERT_NE(Get<TrainStep>(), nullptr);
  }

  // To the final save of the chief, who is alone.
  void RunToFinal() {
    RunToFirstStep(/*chief=*/true);
    Send(TrainEvent{StepReport()});
    Send(WatchEvent{State(STOPPING, 1, {7})});
    Send(StepEvent{Reply(false, 1, STOPPING)});
    ASSERT_NE(Get<RunFinal>(), nullptr);
    EXPECT_TRUE(Get<RunFinal>()->completed);
  }

  // A state with a live worker 1.
  JobState StateWithAnother(JobPhase phase) {
    JobState state = State(phase, 1, {7});
    Sender* other = state.add_workers()->mutable_sender();
    other->set_incarnation(5);
    other->mutable_task()->set_job("worker");
    other->mutable_task()->set_index(1);
    return state;
  }

  // From the first step to the wait for worker 1.
  void DrainBesideAnother() {
    Send(WatchEvent{StateWithAnother(RUNNING)});
    Send(SignalEvent{15});
    Send(TrainEvent{StepReport()});
    Send(StepEvent{Reply(false, 1, STOPPING)});
  }

  std::unique_ptr<SessionMachine> machine_;
  std::vector<SessionAction> actions_;
  absl::Time now_ = absl::UnixEpoch();
  int64_t version_ = 0;
};

TEST_F(SessionMachineTest, ChiefInitializesAnEmptyCluster) {
  Start(/*chief=*/true, /*ps_tasks=*/2);
  Send(TickEvent{});
  EXPECT_EQ(actions_.size(), 2);  // A Hello to each.
  Send(HelloEvent{0, Shard(7)});
  Send(HelloEvent{1, Shard(8)});
  ASSERT_NE(Get<SendRegister>(), nullptr);
  Send(RegisterEvent{Registered(State(INITIAL))});
  ASSERT_NE(Get<SendWatch>(), nullptr);
  ASSERT_NE(Get<SendBeginEpoch>(), nullptr);
  BeginEpochReply begun;
  begun.set_model_epoch(1);
  Send(BeginEpochEvent{begun});
  ASSERT_NE(Get<LoadModel>(), nullptr);
  EXPECT_THAT(Get<LoadModel>()->ps_incarnations, ElementsAre(7, 8));
  Send(LoadEvent{LoadedModel()});
  ASSERT_NE(Get<SendCommit>(), nullptr);
  CommitEpochReply committed;
  *committed.mutable_state() = State(RUNNING, 1, {7, 8});
  Send(CommitEvent{committed});
  ASSERT_NE(Get<EnterEpoch>(), nullptr);
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.step, 0);
}

TEST_F(SessionMachineTest, ChiefAttachesToACommittedEpoch) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7, 4)});
  Send(RegisterEvent{Registered(State(RUNNING, 4, {7}), 12)});
  EXPECT_EQ(Get<SendBeginEpoch>(), nullptr);
  ASSERT_NE(Get<EnterEpoch>(), nullptr);
  EXPECT_EQ(Get<EnterEpoch>()->data_position, 12);
}

TEST_F(SessionMachineTest, ChiefRestoresAllWhenOneShardLostItsMemory) {
  Start(/*chief=*/true, /*ps_tasks=*/2);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7, 4)});
  Send(HelloEvent{1, Shard(18, 0)});
  Send(RegisterEvent{Registered(State(RUNNING, 4, {7, 8}))});
  ASSERT_NE(Get<SendBeginEpoch>(), nullptr);
  EXPECT_EQ(Get<SendBeginEpoch>()->seen_epoch, 4);
}

TEST_F(SessionMachineTest, ChiefWaitsWhileItsPredecessorHoldsTheLease) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7)});
  Send(RegisterEvent{Registered(State(INITIAL))});
  Send(BeginEpochEvent{absl::AbortedError("another chief is alive")});
  EXPECT_EQ(Get<SendBeginEpoch>(), nullptr);
  Pass(absl::Seconds(1));
  EXPECT_NE(Get<SendBeginEpoch>(), nullptr);
}

TEST_F(SessionMachineTest, SleepsWhileACallOfTheChiefIsUnderWay) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7)});
  Pass(absl::Milliseconds(500));  // waits to be registered
  Send(RegisterEvent{Registered(State(INITIAL))});
  ASSERT_NE(Get<SendBeginEpoch>(), nullptr);
  Pass(absl::Seconds(2));
  EXPECT_GT(machine_->next_wakeup(), now_);
}

TEST_F(SessionMachineTest, WorkerWaitsForTheChief) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7)});
  Send(RegisterEvent{Registered(State(INITIAL))});
  Pass(absl::Seconds(10));
  ASSERT_NE(Get<Say>(), nullptr);
  EXPECT_THAT(Get<Say>()->text, HasSubstr("/job:worker/task:0"));
  Send(WatchEvent{State(RUNNING, 1, {7})});
  EXPECT_NE(Get<SendStep>(), nullptr);
}

TEST_F(SessionMachineTest, SaysForWhomItWaitsEveryTenSeconds) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, absl::UnavailableError("connection refused")});
  int lines = 0;
  for (int i = 0; i < 31; ++i) {
    Pass(absl::Seconds(1));
    if (const Say* say = Get<Say>(); say != nullptr) {
      ++lines;
      EXPECT_THAT(say->text, HasSubstr("/job:ps/task:0 at host0:2222"));
      EXPECT_THAT(say->text, HasSubstr("connection refused"));
    }
    if (Get<SendHello>() != nullptr) {
      Send(HelloEvent{0, absl::UnavailableError("connection refused")});
    }
  }
  EXPECT_GE(lines, 3);
  EXPECT_LE(lines, 4);
}

TEST_F(SessionMachineTest, GivesUpAfterMaxWaitNamingTheMissing) {
  Start(/*chief=*/false, /*ps_tasks=*/2);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7)});
  Pass(absl::Seconds(60));
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("/job:ps/task:1 at host1:2222"));
}

TEST_F(SessionMachineTest, OtherClusterEndsItAtOnce) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, absl::FailedPreconditionError("another cluster")});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitBadConfig);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("another cluster"));
}

TEST_F(SessionMachineTest, OtherProtocolEndsItAtOnceNamingBoth) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  HelloReply reply = Shard(7);
  reply.set_protocol_version(kProtocolVersion + 1);
  reply.set_muster_version("9.9\n");
  Send(HelloEvent{0, reply});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitBadConfig);
  EXPECT_THAT(
      Get<Exit>()->text,
      AllOf(HasSubstr("/job:ps/task:0 at host0:2222 speaks protocol 2 "
                      "(version '9.9\\n')"),
            HasSubstr(absl::StrCat("this worker speaks protocol 1 (version '",
                                   kMusterVersion, "')"))));
  EXPECT_EQ(Get<SendRegister>(), nullptr);
}

TEST_F(SessionMachineTest, RefusedCredentialsEndItWithTheirOwnCode) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, absl::UnauthenticatedError("certificate")});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitInsecure);
}

TEST_F(SessionMachineTest, OtherTrainingSpecEndsItAtOnce) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7)});
  Send(RegisterEvent{absl::InvalidArgumentError("seed is 2, chief's is 1")});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitBadConfig);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("seed is 2"));
}

TEST_F(SessionMachineTest, OtherModelOnTheShardsEndsItAtOnce) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7, 1)});
  JobState state = State(RUNNING, 1, {7});
  state.set_fingerprint(kFingerprint + 1);
  Send(RegisterEvent{Registered(state)});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitBadConfig);
}

TEST_F(SessionMachineTest, UnusableCheckpointEndsTheJobWithThree) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7)});
  Send(RegisterEvent{Registered(State(INITIAL))});
  Send(BeginEpochEvent{BeginEpochReply()});
  Send(LoadEvent{absl::FailedPreconditionError("conv1/weights"), true});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_TRUE(Get<SendFinish>()->stop_job);
  Send(FinishEvent{FinishReply()});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitBadCheckpoint);
}

TEST_F(SessionMachineTest, ReportsEachStepAndAsksForTheNext) {
  RunToFirstStep(/*chief=*/false);
  EXPECT_EQ(Get<TrainStep>()->step, 1);
  StepReport report;
  report.loss = 0.5;
  Send(TrainEvent{report});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.step, 1);
  EXPECT_EQ(Get<SendStep>()->report.loss, 0.5);
  Send(StepEvent{Reply(true, 1)});
  ASSERT_NE(Get<TrainStep>(), nullptr);
  EXPECT_EQ(Get<TrainStep>()->step, 2);
}

TEST_F(SessionMachineTest, RepeatsALostReportWithTheSameStep) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  Send(StepEvent{absl::UnavailableError("reset")});
  ASSERT_NE(Get<SendHello>(), nullptr);
  Send(HelloEvent{0, Shard(7, 1)});
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.step, 1);
  EXPECT_FALSE(Get<SendStep>()->report.abandoned);
  ASSERT_NE(Get<EnterEpoch>(), nullptr);
  EXPECT_EQ(Get<EnterEpoch>()->data_position, EnterEpoch::kKeepPosition);
}

TEST_F(SessionMachineTest, RefusedWorkerAsksAgainWhenTheStateChanges) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7, 1)});
  Send(RegisterEvent{Registered(State(RUNNING, 1, {7}))});
  Send(StepEvent{Reply(false, 1)});
  EXPECT_EQ(Get<SendStep>(), nullptr);
  Send(TickEvent{});
  EXPECT_EQ(Get<SendStep>(), nullptr);
  Send(WatchEvent{State(RUNNING, 1, {7})});
  EXPECT_NE(Get<SendStep>(), nullptr);
}

TEST_F(SessionMachineTest, RefusedWorkerAsksAgainAfterAWhile) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7, 1)});
  Send(RegisterEvent{Registered(State(RUNNING, 1, {7}))});
  Send(StepEvent{Reply(false, 1)});
  EXPECT_LE(machine_->next_wakeup(), now_ + absl::Seconds(1));
  Pass(absl::Seconds(1));
  EXPECT_NE(Get<SendStep>(), nullptr);
}

TEST_F(SessionMachineTest, FencedWorkerWaitsForTheNewEpochAndGoesOn) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{absl::AbortedError("fenced: epoch 2")});
  ASSERT_NE(Get<SendHello>(), nullptr);
  Send(HelloEvent{0, Shard(7, 2)});
  Pass(absl::Seconds(1));
  EXPECT_EQ(Get<SendStep>(), nullptr);
  JobState state = State(RUNNING, 2, {7});
  WorkerState* self = state.add_workers();
  self->mutable_sender()->mutable_task()->set_job("worker");
  self->mutable_sender()->mutable_task()->set_index(1);
  self->set_data_position(3);
  Send(WatchEvent{state});
  Send(HelloEvent{0, Shard(7, 2)});
  ASSERT_NE(Get<EnterEpoch>(), nullptr);
  EXPECT_EQ(Get<EnterEpoch>()->model_epoch, 2);
  EXPECT_EQ(Get<EnterEpoch>()->data_position, 3);
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.step, 0);
}

TEST_F(SessionMachineTest, AbandonsTheStepWhenAPsIsGoneForAMoment) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{absl::UnavailableError("reset")});
  Send(HelloEvent{0, Shard(7, 1)});
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.step, 1);
  EXPECT_TRUE(Get<SendStep>()->report.abandoned);
}

TEST_F(SessionMachineTest, AnEpochOfOtherPsStartsIsAnotherOne) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  // The report's answer never comes: the only ps has died.
  Send(StepEvent{absl::UnavailableError("gone")});
  Pass(absl::Seconds(1));
  Send(HelloEvent{0, Shard(8, 1)});
  Send(RegisterEvent{Registered(State(RUNNING, 1, {8}), 3)});
  ASSERT_NE(Get<EnterEpoch>(), nullptr);
  EXPECT_EQ(Get<EnterEpoch>()->data_position, 3);
  // What is lost with the old one is not reported to the new one.
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.step, 0);
}

TEST_F(SessionMachineTest, ChiefRestoresWhenAPsComesBackEmpty) {
  RunToFirstStep(/*chief=*/true);
  Send(TrainEvent{absl::UnavailableError("reset")});
  Send(HelloEvent{0, absl::UnavailableError("refused")});
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<SendHello>(), nullptr);
  Send(HelloEvent{0, Shard(8, 0)});
  // Its coordinator is new too.
  ASSERT_NE(Get<SendRegister>(), nullptr);
  version_ = 0;
  Send(RegisterEvent{Registered(State(INITIAL))});
  ASSERT_NE(Get<SendBeginEpoch>(), nullptr);
  EXPECT_EQ(Get<SendBeginEpoch>()->seen_epoch, 0);
}

TEST_F(SessionMachineTest, RegistersAgainWithACoordinatorThatForgotIt) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  Send(StepEvent{absl::FailedPreconditionError("register")});
  Send(HelloEvent{0, Shard(7, 1)});
  Pass(absl::Seconds(1));
  EXPECT_NE(Get<SendRegister>(), nullptr);
}

TEST_F(SessionMachineTest, AsksAgainAtOnceAfterGivingAStepUp) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{absl::UnavailableError("reset")});
  Send(HelloEvent{0, Shard(7, 1)});
  Pass(absl::Seconds(1));
  Send(StepEvent{Reply(false, 1)});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.step, 0);
}

TEST_F(SessionMachineTest, YieldsToANewerStartOfItsTask) {
  RunToFirstStep(/*chief=*/false);
  Send(WatchEvent{absl::FailedPreconditionError("fenced: replaced")});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitFailed);
}

TEST_F(SessionMachineTest, WorkerFinishesWhenTheJobStops) {
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

TEST_F(SessionMachineTest, ChiefFinishesLast) {
  RunToFirstStep(/*chief=*/true);
  Send(TrainEvent{StepReport()});
  Send(StepEvent{Reply(false, 1, STOPPING)});
  JobState state = State(STOPPING, 1, {7});
  Sender* other = state.add_workers()->mutable_sender();
  other->set_incarnation(5);
  other->mutable_task()->set_job("worker");
  other->mutable_task()->set_index(1);
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

TEST_F(SessionMachineTest, FullDiskAtTheEndIsAFailureAndNoLostPeer) {
  RunToFinal();
  Send(FinalEvent{absl::ResourceExhaustedError("final save: disk full")});
  EXPECT_EQ(Get<SendHello>(), nullptr);
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_EQ(Get<SendFinish>()->reason, "done");
  Send(FinishEvent{FinishReply()});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitFailed);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("disk full"));
}

TEST_F(SessionMachineTest, TriesTheFinalSaveAgainAfterALostPeer) {
  RunToFinal();
  Send(FinalEvent{absl::UnavailableError("reset")});
  ASSERT_NE(Get<SendHello>(), nullptr);
  Send(HelloEvent{0, Shard(7, 1)});
  Pass(absl::Seconds(1));
  EXPECT_NE(Get<RunFinal>(), nullptr);
}

TEST_F(SessionMachineTest, LateWorkerOfADoneJobExitsAtOnce) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7, 1)});
  Send(RegisterEvent{Registered(State(DONE, 1, {7}))});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

TEST_F(SessionMachineTest, SignalFinishesTheStepAndReportsIt) {
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

TEST_F(SessionMachineTest, SignalledChiefStopsTheJobAndSaves) {
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

TEST_F(SessionMachineTest, SignalledChiefSavesWhatTheOthersStillReport) {
  RunToFirstStep(/*chief=*/true);
  DrainBesideAnother();
  EXPECT_EQ(Get<RunFinal>(), nullptr);
  JobState state = StateWithAnother(STOPPING);
  state.mutable_workers(0)->set_finished(true);
  Send(WatchEvent{state});
  ASSERT_NE(Get<RunFinal>(), nullptr);
  EXPECT_FALSE(Get<RunFinal>()->completed);
}

TEST_F(SessionMachineTest, SignalledChiefWaitsForTheOthersOnlySoLong) {
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

TEST_F(SessionMachineTest, SignalledChiefTriesItsSaveAfterALostAnswer) {
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

TEST_F(SessionMachineTest, SignalledChiefLeavesAPsThatStaysAway) {
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

TEST_F(SessionMachineTest, SignalAfterTheLastSaveIsAnOrdinaryEnd) {
  RunToFinal();
  Send(SignalEvent{15});
  Send(FinalEvent{absl::OkStatus()});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_EQ(Get<SendFinish>()->reason, "done");
  Send(FinishEvent{FinishReply()});
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

TEST_F(SessionMachineTest, ChiefStopsTheJobForAHook) {
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

TEST_F(SessionMachineTest, StopForAFailureSavesNothingAndExitsWithOne) {
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

TEST_F(SessionMachineTest, StopIsAskedForAgainAfterARestore) {
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

TEST_F(SessionMachineTest, OnlyTheChiefCanStopTheJob) {
  RunToFirstStep(/*chief=*/false);
  Send(StopEvent{"seconds", absl::OkStatus()});
  Send(TrainEvent{StepReport()});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->stop_reason, "");
}

TEST_F(SessionMachineTest, ARefusedStepIsGivenUpAndTheNextIsTaken) {
  RunToFirstStep(/*chief=*/false);
  StepReport refused;
  refused.abandoned = true;
  Send(TrainEvent{refused});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_TRUE(Get<SendStep>()->report.abandoned);
  EXPECT_EQ(Get<SendStep>()->report.step, 1);
  Send(StepEvent{Reply(false, 1)});
  ASSERT_NE(Get<SendStep>(), nullptr);
  Send(StepEvent{Reply(true, 1)});
  ASSERT_NE(Get<TrainStep>(), nullptr);
  EXPECT_EQ(Get<TrainStep>()->step, 2);
}

TEST_F(SessionMachineTest, SignalledChiefSaysThatItCouldNotSave) {
  RunToFirstStep(/*chief=*/true);
  Send(SignalEvent{15});
  Send(TrainEvent{StepReport()});
  Send(StepEvent{Reply(false, 1, STOPPING)});
  Send(FinalEvent{absl::ResourceExhaustedError("disk full")});
  ASSERT_NE(Get<Say>(), nullptr);
  EXPECT_TRUE(Get<Say>()->is_error);
  EXPECT_EQ(Get<Say>()->text, "disk full");
  Send(FinishEvent{FinishReply()});
  EXPECT_EQ(Get<Exit>()->code, 143);
}

TEST_F(SessionMachineTest, SignalWhileWaitingExitsAtOnce) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(SignalEvent{15});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, 143);
}

TEST_F(SessionMachineTest, FatalErrorInAStepEndsTheWorker) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{absl::OutOfRangeError("loss is nan")});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_FALSE(Get<SendFinish>()->stop_job);
  Send(FinishEvent{FinishReply()});
  EXPECT_EQ(Get<Exit>()->code, kExitFailed);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("loss is nan"));
}

TEST_F(SessionMachineTest, ChiefSavesOnceWhenAPsAsks) {
  RunToFirstStep(/*chief=*/true);
  JobState state = State(RUNNING, 1, {7});
  state.set_save_requests(1);
  Send(WatchEvent{state});
  ASSERT_NE(Get<SaveNow>(), nullptr);
  EXPECT_EQ(Get<SaveNow>()->save_request, 1);
  Send(TickEvent{});
  EXPECT_EQ(Get<SaveNow>(), nullptr);
}

TEST_F(SessionMachineTest, ChiefDoesNotSaveWhatWasAnswered) {
  RunToFirstStep(/*chief=*/true);
  JobState state = State(RUNNING, 1, {7});
  state.set_save_requests(1);
  state.set_saves_answered(1);
  Send(WatchEvent{state});
  EXPECT_EQ(Get<SaveNow>(), nullptr);
}

TEST_F(SessionMachineTest, OnlyTheChiefSavesWhenAPsAsks) {
  RunToFirstStep(/*chief=*/false);
  JobState state = State(RUNNING, 1, {7});
  state.set_save_requests(1);
  Send(WatchEvent{state});
  EXPECT_EQ(Get<SaveNow>(), nullptr);
}

}  // namespace
}  // namespace muster
