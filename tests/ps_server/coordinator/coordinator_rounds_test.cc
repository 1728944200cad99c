// Steps that wait for other workers: rounds and clocks at the coordinator.
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/coordinator_job.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

const Sender kChief = MakeSender(0, 100);
const Sender kB = MakeSender(1, 101);
const Sender kC = MakeSender(2, 102);

class CoordinatorRoundsTest : public testing::Test, protected CoordinatorJob {
 protected:
  // All of `senders` ask for a first step, and get one of `round`.
  void TakeSteps(const std::vector<Sender>& senders, int64_t round) {
    for (const Sender& sender : senders) {
      const auto reply = Step(sender, 0);
      ASSERT_TRUE(reply.has_value());
      ASSERT_TRUE(reply->granted());
      ASSERT_EQ(reply->token().round(), round);
    }
  }

  int64_t global_step() { return coordinator().global_step(); }
};

TEST_F(CoordinatorRoundsTest, ARoundIsOneStepAndAnswersWhoWaits) {
  Start(3, MakeSyncSpec(3, 3), StopAtStep(10));
  TakeSteps({kChief, kB, kC}, 1);
  const int64_t version = coordinator().state_version();
  EXPECT_FALSE(Step(kC, 1, 1).has_value()) << "nobody else has delivered";
  EXPECT_FALSE(Step(kChief, 1, 1).has_value());
  EXPECT_EQ(global_step(), 0);
  EXPECT_EQ(coordinator().State().round(), 1);
  for (const auto& reply : {Step(kB, 1, 1), Take(kChief), Take(kC)}) {
    ASSERT_TRUE(reply.has_value());
    EXPECT_TRUE(reply->granted());
    EXPECT_EQ(reply->global_step(), 1);
    ASSERT_EQ(reply->token().round(), 2);
    ASSERT_EQ(reply->token().chosen_size(), 3);
    EXPECT_EQ(reply->token().chosen(0).sender().task().index(), 0);
    EXPECT_EQ(reply->token().chosen(2).sender().incarnation(), 102);
  }
  EXPECT_EQ(coordinator().state_version(), version);
  EXPECT_EQ(coordinator().outstanding_grants(), 1);
  EXPECT_EQ(WorkerOf(1).steps(), 1);
  EXPECT_EQ(WorkerOf(1).examples(), kBatch);
}

TEST_F(CoordinatorRoundsTest, AnOperatorIsToldForWhomEachWaits) {
  Start(3, MakeSyncSpec(3, 3), StopAtStep(10));
  TakeSteps({kChief, kB, kC}, 1);
  EXPECT_FALSE(Step(kC, 1, 1).has_value());
  EXPECT_FALSE(Step(kChief, 1, 1).has_value());
  const JobState state = coordinator().StateForOperator(now());
  const char* const kWait = "/job:worker/task:1 to push its gradient of step 1";
  EXPECT_EQ(state.workers(0).waits_for(), kWait);
  EXPECT_EQ(state.workers(1).waits_for(), "");
  EXPECT_EQ(state.workers(2).waits_for(), kWait);
}

TEST_F(CoordinatorRoundsTest, ABackupWorkersStepIsDroppedAndItGoesOn) {
  Start(3, MakeSyncSpec(2, 3), StopAtStep(10));
  TakeSteps({kChief, kB, kC}, 1);
  EXPECT_FALSE(Step(kC, 1, 1).has_value());
  ASSERT_TRUE(Step(kB, 1, 1).has_value());
  const auto late = Step(kChief, 1, 1);
  ASSERT_TRUE(late.has_value());
  EXPECT_TRUE(late->granted());
  EXPECT_EQ(late->token().round(), 2);
  EXPECT_EQ(WorkerOf(0).dropped_steps(), 1);
  EXPECT_EQ(WorkerOf(0).steps(), 0);
  EXPECT_EQ(global_step(), 1);
  // A repeat counts nothing.
  EXPECT_TRUE(Step(kChief, 1, 1)->granted());
  EXPECT_EQ(WorkerOf(0).dropped_steps(), 1);
}

// Error feedback at the worker goes by it.
TEST_F(CoordinatorRoundsTest, ATokenTellsWhichStepOfItsWorkerIsInAnUpdate) {
  Start(3, MakeSyncSpec(1, 3), StopAtStep(10));
  TakeSteps({kChief, kB, kC}, 1);
  const auto first = Step(kB, 1, 1);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->token().chosen_step(), 1);
  EXPECT_EQ(Step(kC, 1, 1)->token().chosen_step(), 0) << "dropped";
  // The chief's report is late by two rounds; which of its steps was in one
  // cannot be told from the steps chosen last.
  EXPECT_EQ(Step(kB, 2, 2)->token().chosen_step(), 2);
  const auto late = Step(kChief, 1, 1);
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(late->token().round(), 3);
  EXPECT_EQ(late->token().chosen_step(), 0);
  EXPECT_EQ(Step(kChief, 2, 3)->token().chosen_step(), 2);
  // Another start of the task has none yet.
  const Sender again = MakeSender(0, 103);
  Register(again);
  EXPECT_EQ(Step(again, 0)->token().chosen_step(), 0);
}

TEST_F(CoordinatorRoundsTest, AStepThatAShardFoundLateIsDropped) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(10));
  TakeSteps({kChief, kB}, 1);
  StepRequest late = MakeStep(kB, 1, 1);
  late.set_late(true);
  ASSERT_THAT(Send(late, 77), IsOk());
  EXPECT_EQ(WorkerOf(1).dropped_steps(), 1);
  EXPECT_TRUE(answers().at(77).granted()) << "the round is open still";
}

TEST_F(CoordinatorRoundsTest, RoundsThatWereNotGivenOutAreRefused) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(10));
  TakeSteps({kChief}, 1);
  for (const int64_t round : {0, -1, 2}) {
    EXPECT_THAT(
        Send(MakeStep(kChief, 1, round), 5),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("given out")));
  }
  ASSERT_THAT(Commit(ReplicationSpec(), StopAtStep(10)), IsOk());
  EXPECT_THAT(
      Send(MakeStep(kChief, 1, 1), 5),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no rounds")));
}

TEST_F(CoordinatorRoundsTest, WhoWaitsIsToldForWhomAfterItsTime) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(10));
  TakeSteps({kChief, kB}, 1);
  ASSERT_FALSE(Step(kChief, 1, 1).has_value());
  EXPECT_EQ(coordinator().NextDeadline(), now() + absl::Seconds(5));
  Pass(absl::Seconds(5));
  const auto reply = Take(kChief);
  ASSERT_TRUE(reply.has_value());
  EXPECT_FALSE(reply->granted());
  EXPECT_EQ(reply->phase(), RUNNING);
  ASSERT_EQ(reply->waiting_for_size(), 1);
  EXPECT_EQ(reply->waiting_for(0).index(), 1);
  EXPECT_EQ(reply->waiting_why(), "to push its gradient of step 1");
  EXPECT_FALSE(Step(kChief, 1, 1).has_value()) << "a repeat waits again";
  EXPECT_TRUE(Step(kB, 1, 1)->granted());
  EXPECT_TRUE(Take(kChief)->granted());
}

TEST_F(CoordinatorRoundsTest, ANewStepOfAWorkerAnswersItsOlderOne) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(10));
  TakeSteps({kChief, kB}, 1);
  ASSERT_THAT(Send(MakeStep(kChief, 1, 1), 501), IsOk());
  EXPECT_EQ(answers().count(501), 0);
  ASSERT_THAT(Send(MakeStep(kChief, 1, 1), 502), IsOk());
  ASSERT_EQ(answers().count(501), 1);
  EXPECT_FALSE(answers().at(501).granted());
  EXPECT_EQ(answers().count(502), 0);
}

TEST_F(CoordinatorRoundsTest, ALostWorkerLeavesTheQuorumAndComesBack) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(10));
  TakeSteps({kChief, kB}, 1);
  ASSERT_FALSE(Step(kChief, 1, 1).has_value());
  Pass(kTimeout, {kChief});
  EXPECT_EQ(global_step(), 1);
  const auto next = Step(kChief, 1, 1);
  ASSERT_TRUE(next->granted());
  EXPECT_EQ(Step(kB, 1, 1)->token().round(), 2) << "its step is late";
  EXPECT_EQ(WorkerOf(1).dropped_steps(), 1);
  EXPECT_FALSE(Step(kChief, 2, 2).has_value()) << "it is waited for again";
}

TEST_F(CoordinatorRoundsTest, TheStepOfAWorkerThatDiedAfterItsDeliveryCounts) {
  Start(3, MakeSyncSpec(3, 3), StopAtStep(10));
  TakeSteps({kChief, kB, kC}, 1);
  Step(kC, 1, 1);
  Pass(kTimeout, {kChief, kB});
  EXPECT_TRUE(WorkerOf(2).lost());
  EXPECT_FALSE(Step(kChief, 1, 1).has_value());
  const auto reply = Step(kB, 1, 1);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->token().chosen_size(), 3);
}

TEST_F(CoordinatorRoundsTest, ANewIncarnationTakesTheRowsOfItsDeliveryAnew) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(10));
  TakeSteps({kChief, kB}, 1);
  Step(kB, 1, 1);
  const Sender successor = MakeSender(1, 555);
  Register(successor);
  EXPECT_FALSE(Step(kChief, 1, 1).has_value());
  TakeSteps({successor}, 1);
  const auto reply = Step(successor, 1, 1);
  ASSERT_TRUE(reply.has_value());
  ASSERT_EQ(reply->token().chosen_size(), 2);
  EXPECT_EQ(reply->token().chosen(1).sender().incarnation(), 555);
}

TEST_F(CoordinatorRoundsTest, FinishLeavesTheQuorumAtOnce) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(10));
  TakeSteps({kChief, kB}, 1);
  Step(kChief, 1, 1);
  Finish(kB);
  EXPECT_EQ(global_step(), 1);
  EXPECT_TRUE(Step(kChief, 1, 1)->granted());
}

TEST_F(CoordinatorRoundsTest, AnAbandonedStepIsTakenAgainInTheSameRound) {
  Start(1, MakeSyncSpec(1, 1), StopAtStep(10));
  TakeSteps({kChief}, 1);
  StepRequest abandon = MakeStep(kChief, 1, 1);
  abandon.set_abandoned(true);
  ASSERT_THAT(Send(abandon, 5), IsOk());
  EXPECT_FALSE(answers().at(5).granted());
  EXPECT_EQ(coordinator().outstanding_grants(), 0);
  EXPECT_EQ(coordinator().State().round(), 0);
  TakeSteps({kChief}, 1);
  EXPECT_EQ(Step(kChief, 2, 1)->token().round(), 2);
}

TEST_F(CoordinatorRoundsTest, TooFewReplicasWaitOrEnd) {
  for (const TooFewReplicas what : {WAIT, EXIT}) {
    ReplicationSpec spec = MakeSyncSpec(2, 2, 2);
    spec.mutable_sync()->set_when_too_few(what);
    Start(2, spec, StopAtStep(10));
    TakeSteps({kChief, kB}, 1);
    const int64_t step = what == EXIT ? 2 : 1;
    ASSERT_FALSE(Step(kChief, step, 1).has_value());
    Finish(kB);
    Pass(StateVersions::kPause);
    EXPECT_EQ(global_step(), 0);
    std::optional<StepReply> reply = Take(kChief);
    ASSERT_TRUE(reply.has_value());
    EXPECT_THAT(reply->waiting_why(), HasSubstr("min_replicas is 2"));
    EXPECT_EQ(reply->too_few_replicas(), what == EXIT);
    reply = Step(kChief, step, 1);
    EXPECT_EQ(reply.has_value(), what == EXIT);
  }
}

TEST_F(CoordinatorRoundsTest, TheBudgetCountsTheBatchesOfARound) {
  StopSpec stop;
  stop.set_epochs(5);  // 50 rows: two rounds of 20 and a rest of 10
  Start(2, MakeSyncSpec(2, 2), stop);
  TakeSteps({kChief, kB}, 1);
  for (int64_t round = 1; round <= 2; ++round) {
    Step(kChief, round, round);
    ASSERT_TRUE(Step(kB, round, round).has_value());
  }
  EXPECT_EQ(coordinator().phase(), STOPPING);
  EXPECT_EQ(coordinator().State().stop_reason(), "epochs");
  EXPECT_EQ(global_step(), 2);
  const auto reply = Take(kChief);
  ASSERT_TRUE(reply.has_value());
  EXPECT_FALSE(reply->granted());
  EXPECT_EQ(reply->phase(), STOPPING);
  // The parameters after the last step, for the chief.
  const auto held = Hold(true);
  ASSERT_THAT(held, IsOk());
  EXPECT_EQ(held->token().round(), 3);
  EXPECT_EQ(held->token().chosen_size(), 2);
  EXPECT_EQ(held->state().global_step(), 2);
}

TEST_F(CoordinatorRoundsTest, AStopLetsTheOpenRoundClose) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(10));
  TakeSteps({kChief, kB}, 1);
  StepRequest stop = MakeStep(kChief, 1, 1);
  stop.set_stop_reason("seconds");
  ASSERT_THAT(Send(stop, 5), IsOk());
  ASSERT_EQ(answers().count(5), 1) << "a stop does not wait";
  EXPECT_EQ(coordinator().phase(), STOPPING);
  EXPECT_EQ(global_step(), 0);
  EXPECT_FALSE(Step(kB, 1, 1)->granted());
  EXPECT_EQ(global_step(), 1);
  Finish(kB);
  Finish(kChief);
  EXPECT_EQ(coordinator().phase(), DONE);
  EXPECT_EQ(global_step(), 1);
}

TEST_F(CoordinatorRoundsTest, ARoundThatNobodySeesDoesNotClose) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(10));
  TakeSteps({kChief, kB}, 1);
  Step(kChief, 1, 1);
  Finish(kChief, /*stop_job=*/true);
  Finish(kB);
  EXPECT_EQ(coordinator().phase(), DONE);
  EXPECT_EQ(global_step(), 0);
}

TEST_F(CoordinatorRoundsTest, ANewEpochEndsTheRound) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(10));
  TakeSteps({kChief, kB}, 1);
  Step(kChief, 1, 1);
  ASSERT_THAT(Commit(MakeSyncSpec(2, 2), StopAtStep(10), /*global_step=*/4),
              IsOk());
  const auto reply = Take(kChief);
  ASSERT_TRUE(reply.has_value());
  EXPECT_FALSE(reply->granted());
  TakeSteps({kChief, kB}, 5);
  Step(kChief, 2, 5);
  EXPECT_EQ(Step(kB, 2, 5)->token().round(), 6);
  EXPECT_EQ(global_step(), 5);
  EXPECT_THAT(Commit(MakeSyncSpec(3, 2), StopAtStep(10)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("replicas_to_aggregate is 3")));
  ReplicationSpec all_reduce;
  all_reduce.mutable_all_reduce();
  EXPECT_THAT(Commit(all_reduce, StopAtStep(10)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("all_reduce, which is sync {}")));
  EXPECT_THAT(
      Commit(MakeBoundedSpec(-1), StopAtStep(10)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bound is -1")));
}

TEST_F(CoordinatorRoundsTest, APauseOfAPsLetsTheRoundCloseAndOpensNone) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(10));
  TakeSteps({kChief, kB}, 1);
  Step(kChief, 1, 1);
  AskForSave(/*leaving=*/false);
  EXPECT_EQ(coordinator().State().save_requests(), 0);
  EXPECT_FALSE(Step(kB, 1, 1).has_value());
  EXPECT_EQ(global_step(), 1);
  EXPECT_EQ(coordinator().State().save_requests(), 1);
  EXPECT_FALSE(Take(kChief)->granted()) << "told that a save is wanted";
  EXPECT_FALSE(Step(kChief, 1, 1).has_value());
  AskForSave(/*leaving=*/true);
  EXPECT_TRUE(Take(kChief)->granted());
}

TEST_F(CoordinatorRoundsTest, TheLastPauseSeesTheRoundThatOneBeforeItHeld) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(10));
  TakeSteps({kChief, kB}, 1);
  ASSERT_THAT(Hold(true), IsOk());
  Step(kChief, 1, 1);
  Step(kB, 1, 1);
  EXPECT_EQ(global_step(), 0);
  StepRequest stop = MakeStep(kChief, 0);
  stop.set_stop_reason("interrupted");
  ASSERT_THAT(Send(stop, Number(kChief)), IsOk());
  ASSERT_EQ(coordinator().phase(), STOPPING);
  EXPECT_EQ(global_step(), 0);
  const auto last = Hold(true);
  ASSERT_THAT(last, IsOk());
  EXPECT_EQ(last->state().global_step(), 1);
  EXPECT_EQ(last->token().round(), 2);
}

TEST_F(CoordinatorRoundsTest, SaveBeforeAPsStops_HasTheRoundThatOneHeld) {
  Start(1, MakeSyncSpec(1, 1), StopAtStep(10));
  TakeSteps({kChief}, 1);
  ASSERT_THAT(Hold(true), IsOk());
  Step(kChief, 1, 1);
  EXPECT_EQ(global_step(), 0) << "the release is late";
  AskForSave(/*leaving=*/false);
  const auto last = Hold(true);
  ASSERT_THAT(last, IsOk());
  EXPECT_EQ(last->state().global_step(), 1);
}

TEST_F(CoordinatorRoundsTest, ARoundThatCannotCloseKeepsNoSaveWaiting) {
  Start(2, MakeSyncSpec(2, 2, 2), StopAtStep(10));
  TakeSteps({kChief}, 1);
  Step(kChief, 1, 1);
  AskForSave(/*leaving=*/false);
  EXPECT_EQ(coordinator().State().save_requests(), 0) << "B may come";
  Finish(kB);
  EXPECT_EQ(coordinator().State().save_requests(), 1);
  EXPECT_EQ(global_step(), 0);
}

TEST_F(CoordinatorRoundsTest, AJoinedStepOfARoundThatCannotCloseIsAwaited) {
  Start(2, MakeSyncSpec(2, 2, 2), StopAtStep(10));
  TakeSteps({kChief}, 1);
  Finish(kB);
  AskForSave(/*leaving=*/false);
  EXPECT_EQ(coordinator().State().save_requests(), 0);
  Step(kChief, 1, 1);
  EXPECT_EQ(coordinator().State().save_requests(), 1);
}

TEST_F(CoordinatorRoundsTest, HoldsRoundsForACut) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(10));
  TakeSteps({kChief, kB}, 1);
  Step(kChief, 1, 1);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto held = Hold(true);
    ASSERT_THAT(held, IsOk());
    EXPECT_EQ(held->token().round(), 1);
    EXPECT_EQ(held->state().global_step(), 0);
  }
  EXPECT_FALSE(Step(kB, 1, 1).has_value());
  EXPECT_EQ(global_step(), 0);
  EXPECT_EQ(coordinator().NextDeadline(), now() + StepRounds::kLongestHold);
  ASSERT_THAT(Hold(false), IsOk());
  EXPECT_EQ(global_step(), 1);
  EXPECT_TRUE(Take(kB)->granted());
  EXPECT_THAT(Hold(true, /*index=*/1), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(CoordinatorRoundsTest, AHoldEndsByItself) {
  Start(1, MakeSyncSpec(1, 1), StopAtStep(10));
  TakeSteps({kChief}, 1);
  ASSERT_THAT(Hold(true), IsOk());
  ASSERT_FALSE(Step(kChief, 1, 1).has_value());
  Pass(StepRounds::kLongestHold);
  EXPECT_TRUE(Take(kChief)->granted());
}

TEST_F(CoordinatorRoundsTest, HoldNeedsRoundsAndTheEpoch) {
  Start(1, ReplicationSpec(), StopAtStep(10));
  EXPECT_THAT(Hold(true), StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("no rounds")));
  PauseRoundsRequest request;
  *request.mutable_sender() = kChief;
  request.set_model_epoch(99);
  EXPECT_THAT(coordinator().PauseRounds(request, now()),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("epoch 99")));
}

TEST_F(CoordinatorRoundsTest, ALostWorkerReopensItsRoundWithItsStep) {
  Start(1, MakeSyncSpec(1, 1), StopAtStep(10));
  TakeSteps({kChief}, 1);
  Pass(kTimeout);
  EXPECT_EQ(coordinator().outstanding_grants(), 0);
  EXPECT_EQ(Step(kChief, 1, 1)->token().round(), 2);
  EXPECT_EQ(WorkerOf(0).steps(), 1);
}

// ---- Clocks -------------------------------------------------------------

TEST_F(CoordinatorRoundsTest, AFastWorkerStopsExactlyAtTheBound) {
  Start(2, MakeBoundedSpec(2), StopAtStep(100));
  ASSERT_TRUE(Step(kB, 0)->granted());
  ASSERT_TRUE(Step(kChief, 0)->granted());
  ASSERT_TRUE(Step(kChief, 1)->granted());
  ASSERT_TRUE(Step(kChief, 2)->granted());
  ASSERT_FALSE(Step(kChief, 3).has_value());
  EXPECT_EQ(global_step(), 3);
  Pass(absl::Seconds(5));
  const auto told = Take(kChief);
  ASSERT_TRUE(told.has_value());
  ASSERT_EQ(told->waiting_for_size(), 1);
  EXPECT_EQ(told->waiting_for(0).index(), 1);
  EXPECT_THAT(told->waiting_why(), HasSubstr("step 1"));
  ASSERT_FALSE(Step(kChief, 3).has_value());
  EXPECT_TRUE(Step(kB, 1)->granted());
  EXPECT_TRUE(Take(kChief)->granted());
}

TEST_F(CoordinatorRoundsTest, TheLostAndTheFinishedHoldUpNobody) {
  Start(3, MakeBoundedSpec(0), StopAtStep(100));
  for (const Sender& sender : {kChief, kB, kC}) Step(sender, 0);
  ASSERT_FALSE(Step(kChief, 1).has_value());
  Finish(kB);
  Pass(kTimeout, {kChief});
  EXPECT_TRUE(Step(kChief, 1)->granted());
  // Back with its old step, it starts at the slowest clock.
  EXPECT_FALSE(Step(kC, 1).has_value());
  EXPECT_TRUE(Step(kChief, 2)->granted());
  EXPECT_TRUE(Take(kC)->granted());
}

TEST_F(CoordinatorRoundsTest, BoundedStepsEndExactly) {
  Start(2, MakeBoundedSpec(1), StopAtStep(3));
  EXPECT_TRUE(Step(kChief, 0)->granted());
  EXPECT_TRUE(Step(kB, 0)->granted());
  EXPECT_TRUE(Step(kChief, 1)->granted());
  EXPECT_FALSE(Step(kB, 1).has_value()) << "the last step is in other hands";
  EXPECT_EQ(Step(kChief, 2)->phase(), STOPPING);
  EXPECT_EQ(Take(kB)->phase(), STOPPING);
  EXPECT_EQ(global_step(), 3);
}

}  // namespace
}  // namespace muster
