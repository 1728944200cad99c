#include "worker/session/session_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "tests/worker/session/session_machine_fixture.h"
#include "worker/client/call_status.h"
#include "worker/client/failing_time.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

TEST_F(SessionMachineTest, ConfirmsThatItTakesOverWhereItIsAsked) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  HelloReply who = Shard(7, 1);
  who.set_takeover(31);
  Send(HelloEvent{0, who});
  ASSERT_NE(Get<SendHello>(), nullptr) << "at once";
  EXPECT_EQ(Get<SendHello>()->takeover, 31);
  EXPECT_EQ(Get<SendRegister>(), nullptr);
  Send(HelloEvent{0, Shard(7, 1)});
  ASSERT_NE(Get<SendRegister>(), nullptr);
  EXPECT_EQ(Get<SendRegister>()->takeover, 0);
  RegisterReply asks = Registered(State(RUNNING, 1, {7}));
  asks.set_takeover(32);
  Send(RegisterEvent{asks});
  ASSERT_NE(Get<SendRegister>(), nullptr) << "at once";
  EXPECT_EQ(Get<SendRegister>()->takeover, 32);
  EXPECT_EQ(Get<SendWatch>(), nullptr);
  asks.set_takeover(33);
  Send(RegisterEvent{asks});
  EXPECT_EQ(Get<SendRegister>(), nullptr) << "the second time after a pause";
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<SendRegister>(), nullptr);
  EXPECT_EQ(Get<SendRegister>()->takeover, 33);
  Send(RegisterEvent{Registered(State(RUNNING, 1, {7}))});
  EXPECT_NE(Get<EnterEpoch>(), nullptr);
}

TEST_F(SessionMachineTest, ChiefAttachesToACommittedEpoch) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7, 4)});
  Send(RegisterEvent{Registered(State(RUNNING, 4, {7}))});
  EXPECT_EQ(Get<SendBeginEpoch>(), nullptr);
  ASSERT_NE(Get<EnterEpoch>(), nullptr);
  EXPECT_TRUE(Get<EnterEpoch>()->is_new);
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

TEST_F(SessionMachineTest, ChiefEndsWith2IfItsCommitIsRefusedForGood) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7)});
  Send(RegisterEvent{Registered(State(INITIAL))});
  BeginEpochReply begun;
  begun.set_model_epoch(1);
  Send(BeginEpochEvent{begun});
  Send(LoadEvent{LoadedModel()});
  Send(CommitEvent{absl::InvalidArgumentError("stop.epochs is no count")});
  ASSERT_NE(Get<SendFinish>(), nullptr) << "it would try for ever";
  EXPECT_TRUE(Get<SendFinish>()->stop_job);
  Send(FinishEvent{Finished(State(DONE))});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitBadConfig);
  EXPECT_THAT(Get<Exit>()->text,
              AllOf(HasSubstr("/job:ps/task:0 at host0:2222 refused: "),
                    HasSubstr("stop.epochs is no count")));
}

TEST_F(SessionMachineTest, ChiefEndsWith2IfItsEpochIsRefusedForGood) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7)});
  Send(RegisterEvent{Registered(State(INITIAL))});
  Send(BeginEpochEvent{absl::InvalidArgumentError("epoch above the limit")});
  Send(FinishEvent{Finished(State(DONE))});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitBadConfig);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("epoch above the limit"));
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

// The transfer, which found the loss, has said the first line.
TEST_F(SessionMachineTest, CountsFromTheLossThatATransferFound) {
  RunToFirstStep(/*chief=*/false);
  absl::Status lost = absl::UnavailableError("given up");
  SetFailingTime(absl::Seconds(5), &lost);
  // It stood in the queue behind the step.
  Send(WatchEvent{absl::UnavailableError("reset")});
  Send(TrainEvent{lost});
  const absl::Status refused =
      absl::UnavailableError("/job:ps/task:0 at host0:2222: refused");
  Send(HelloEvent{0, refused});
  for (int second = 6; second < 11; ++second) {
    Pass(absl::Seconds(1));
    EXPECT_EQ(Get<Say>(), nullptr) << second;
    Send(HelloEvent{0, refused});
  }
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<Say>(), nullptr);
  EXPECT_EQ(Get<Say>()->text,
            "waiting for /job:ps/task:0 at host0:2222 (refused); 11 s so far");
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
  EXPECT_THAT(Get<Exit>()->text,
              AllOf(HasSubstr(absl::StrCat(
                        "/job:ps/task:0 at host0:2222 speaks ", "protocol ",
                        kProtocolVersion + 1, " (version '9.9\\n')")),
                    HasSubstr(absl::StrCat("this worker speaks protocol ",
                                           kProtocolVersion, " (version '",
                                           kMusterVersion, "')")),
                    HasSubstr("it goes on from its checkpoint")));
  EXPECT_EQ(Get<SendRegister>(), nullptr);
}

// Its words are those of protocol 6, which do not say what to do.
TEST_F(SessionMachineTest, RefusalOfAnOlderPs_EndsItWithWhatToDo) {
  Start(/*chief=*/true);
  Send(TickEvent{});
  Send(HelloEvent{0, absl::FailedPreconditionError(
                         "Hello from /job:worker/task:0: it speaks protocol 7 "
                         "(version '0.1.0'), this ps speaks protocol 6 "
                         "(version '0.1.0'); install one version everywhere")});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitBadConfig);
  EXPECT_THAT(Get<Exit>()->text,
              AllOf(HasSubstr("this ps speaks protocol 6 (version '0.1.0')"),
                    HasSubstr("stop the job, and start it with one version "
                              "everywhere: it goes on from its checkpoint")));
}

TEST_F(SessionMachineTest, RefusedCredentialsEndItWithTheirOwnCode) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, absl::UnauthenticatedError("certificate")});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitInsecure);
}

// By a shard or by the coordinator, whoever hears of the newer start first.
TEST_F(SessionMachineTest, WhoIsReplacedHasFailed) {
  const absl::Status replaced = FencedError(
      "incarnation 1 was replaced by a newer start", ErrorReason::kReplaced);
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, replaced});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitFailed);
  EXPECT_TRUE(Get<Exit>()->is_replaced);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("newer start"));
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7)});
  Send(RegisterEvent{replaced});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitFailed);
  EXPECT_TRUE(Get<Exit>()->is_replaced);
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

TEST_F(SessionMachineTest, AFolderThatIsAnothers_EndsTheJobWithThree) {
  RunToFirstStep(/*chief=*/true);
  Send(TrainEvent{OfFile(absl::AlreadyExistsError("another process"))});
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

TEST_F(SessionMachineTest, AStepIsTakenWithTheTokenOfItsGrant) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  StepReply granted = Reply(true, 1);
  granted.mutable_token()->set_round(7);
  Send(StepEvent{granted});
  ASSERT_NE(Get<TrainStep>(), nullptr);
  EXPECT_EQ(Get<TrainStep>()->grant.token.round(), 7);
  StepReport report;
  report.round = 7;
  report.late = true;
  Send(TrainEvent{report});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.round, 7);
  EXPECT_TRUE(Get<SendStep>()->report.late);
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
  EXPECT_FALSE(Get<EnterEpoch>()->is_new);
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
  Send(WatchEvent{state});
  Send(HelloEvent{0, Shard(7, 2)});
  ASSERT_NE(Get<EnterEpoch>(), nullptr);
  EXPECT_EQ(Get<EnterEpoch>()->model_epoch, 2);
  EXPECT_TRUE(Get<EnterEpoch>()->is_new);
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
  Send(RegisterEvent{Registered(State(RUNNING, 1, {8}))});
  ASSERT_NE(Get<EnterEpoch>(), nullptr);
  EXPECT_TRUE(Get<EnterEpoch>()->is_new);
  // The report to the old one is lost with it.
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.step, 0);
}

TEST_F(SessionMachineTest, SaysWhatItHasLostWithPsTaskZero) {
  RunToFirstStep(/*chief=*/false);
  for (int step = 1; step <= 3; ++step) {
    Send(TrainEvent{StepReport()});
    Send(StepEvent{Reply(/*granted=*/step < 3, 1)});
  }
  Send(WatchEvent{absl::UnavailableError("gone")});
  Pass(absl::Seconds(1));
  // Its successor has restored one of the three.
  Send(HelloEvent{0, Shard(8, 2)});
  Send(RegisterEvent{Registered(StateWithSelf(2, 8, /*steps=*/1))});
  ASSERT_NE(Get<EnterEpoch>(), nullptr);
  EXPECT_EQ(Said("lost "),
            "/job:worker/task:1 lost 2 acknowledged steps with a ps");
}

// The chief says it.
TEST_F(SessionMachineTest, SaysNothingOfWhatPsTaskZeroKnowsToBeLost) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  Send(StepEvent{Reply(/*granted=*/true, 1)});
  Send(TrainEvent{absl::AbortedError("fenced: epoch 2")});
  Send(HelloEvent{0, Shard(7, 2)});
  Pass(absl::Seconds(1));
  Send(WatchEvent{StateWithSelf(2, 7, /*steps=*/0)});
  Send(HelloEvent{0, Shard(7, 2)});
  ASSERT_NE(Get<EnterEpoch>(), nullptr);
  EXPECT_EQ(Said("lost "), "");
}

// A gradient that was dropped was never in the model.
TEST_F(SessionMachineTest, CountsNoDroppedStepAsLost) {
  step_wait_ = absl::Seconds(5);
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7, 1)});
  Send(RegisterEvent{Registered(State(RUNNING, 1, {7}))});
  StepReply reply = Reply(/*granted=*/true, 1);
  for (const int64_t chosen : {0, 1, 1}) {
    reply.mutable_token()->set_round(reply.token().round() + 1);
    reply.mutable_token()->set_chosen_step(chosen);
    Send(StepEvent{reply});
    Send(TrainEvent{StepReport()});
  }
  // Nothing is known of the third step.
  Send(StepEvent{Reply(/*granted=*/false, 1)});
  Send(WatchEvent{absl::UnavailableError("gone")});
  Pass(absl::Seconds(1));
  Send(HelloEvent{0, Shard(8, 2)});
  Send(RegisterEvent{Registered(StateWithSelf(2, 8, /*steps=*/0))});
  EXPECT_EQ(Said("lost "),
            "/job:worker/task:1 lost 1 acknowledged step with a ps");
}

TEST_F(SessionMachineTest, AReportNamesThePsTaskZeroOfItsEpoch) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->model_epoch, 1);
  EXPECT_EQ(Get<SendStep>()->ps_incarnation, 7);
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
  EXPECT_EQ(Get<SendBeginEpoch>()->seen_epoch, 1) << "none is used again";
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
  Send(WatchEvent{FencedError("", ErrorReason::kReplaced)});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitFailed);
}

TEST_F(SessionMachineTest, ChiefTellsANewPsThatTheJobIsOver) {
  RunToFinal();
  Send(FinalEvent{absl::OkStatus()});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  Send(FinishEvent{absl::FailedPreconditionError("not registered here")});
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<SendRegister>(), nullptr);
  Send(RegisterEvent{Registered(State(INITIAL))});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_TRUE(Get<SendFinish>()->stop_job);
  Send(FinishEvent{FinishReply()});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
}

TEST_F(SessionMachineTest, IdleChiefNoticesARestartedPs) {
  RunToFirstStep(/*chief=*/true);
  Send(TrainEvent{StepReport()});
  // The last steps are in others' hands.
  Send(StepEvent{Reply(false, 1)});
  Pass(absl::Milliseconds(900));
  EXPECT_EQ(Get<SendHello>(), nullptr);
  for (int i = 0; i < 3 && Get<SendHello>() == nullptr; ++i) {
    Pass(absl::Milliseconds(500));
    if (Get<SendStep>() != nullptr) Send(StepEvent{Reply(false, 1)});
  }
  ASSERT_NE(Get<SendHello>(), nullptr);
  Send(HelloEvent{0, Shard(8)});
  EXPECT_NE(Get<SendRegister>(), nullptr);
}

TEST_F(SessionMachineTest, LateWorkerOfADoneJobExitsAtOnce) {
  Start(/*chief=*/false);
  Send(TickEvent{});
  Send(HelloEvent{0, Shard(7, 1)});
  Send(RegisterEvent{Registered(State(DONE, 1, {7}))});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitDone);
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

// The own step is in the checkpoint, and counted there.
TEST_F(SessionMachineTest, ChiefSavesOnceWhenAPsAsksAfterItsOwnStep) {
  RunToFirstStep(/*chief=*/true);
  JobState state = State(RUNNING, 1, {7});
  state.set_save_requests(1);
  Send(WatchEvent{state});
  EXPECT_TRUE(machine_->WantsSave());
  EXPECT_EQ(Get<SaveNow>(), nullptr);
  Send(TrainEvent{StepReport()});
  EXPECT_EQ(Get<SaveNow>(), nullptr);
  Send(StepEvent{Reply(false, 1)});
  ASSERT_NE(Get<SaveNow>(), nullptr);
  EXPECT_EQ(Get<SaveNow>()->save_request, 1);
  EXPECT_FALSE(machine_->WantsSave());
  Send(TickEvent{});
  EXPECT_EQ(Get<SaveNow>(), nullptr);
}

// The pause is over: who asked has not left in time.
TEST_F(SessionMachineTest, ChiefDoesNotPutASaveOffForASecondStep) {
  RunToFirstStep(/*chief=*/true);
  Send(TrainEvent{StepReport()});
  JobState state = State(RUNNING, 1, {7});
  state.set_save_requests(1);
  Send(WatchEvent{state});
  Send(StepEvent{Reply(true, 1)});
  EXPECT_EQ(Get<SaveNow>(), nullptr);
  ASSERT_NE(Get<TrainStep>(), nullptr) << "it was granted before";
  Send(TrainEvent{StepReport()});
  Send(StepEvent{Reply(true, 1)});
  EXPECT_NE(Get<SaveNow>(), nullptr);
  EXPECT_NE(Get<TrainStep>(), nullptr);
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
