#include "worker/session/step_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/rows/row_ranges.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

using Answer = StepMachine::Answer;

constexpr absl::Duration kWait = absl::Seconds(1);
constexpr absl::Time kNow = absl::UnixEpoch();

StepReply Reply(bool granted, int64_t version = 1) {
  StepReply reply;
  reply.set_granted(granted);
  reply.set_phase(RUNNING);
  reply.set_model_epoch(1);
  reply.set_state_version(version);
  return reply;
}

RowLease Lease(int64_t first, int64_t rows) {
  RowLease lease;
  lease.add_ranges()->set_first(first);
  lease.mutable_ranges(0)->set_rows(rows);
  return lease;
}

SendStep Ask(StepMachine* steps) {
  return steps->Ask(/*state_version=*/1, /*stop_reason=*/"", /*may_wait=*/true,
                    kNow);
}

// In epoch 1 of ps task 0's incarnation 7.
class StepMachineTest : public ::testing::Test {
 protected:
  StepMachineTest() { steps_.Enter(1, {7}); }

  void TakeStep() {
    Ask(&steps_);
    ASSERT_EQ(steps_.OnAnswer(Reply(true), kNow), Answer::kGranted);
    steps_.Take();
    steps_.OnTaken(StepReport());
  }

  StepMachine steps_{kWait};
};

TEST_F(StepMachineTest, ReportsAStepWithTheNextQuestion) {
  SendStep ask = Ask(&steps_);
  EXPECT_EQ(ask.model_epoch, 1);
  EXPECT_EQ(ask.ps_incarnation, 7);
  EXPECT_EQ(ask.report.step, 0);
  EXPECT_EQ(ask.max_wait, kWait);
  EXPECT_EQ(steps_.OnAnswer(Reply(true), kNow), Answer::kGranted);
  EXPECT_EQ(steps_.Take().step, 1);
  StepReport report;
  report.examples = 32;
  steps_.OnTaken(report);
  EXPECT_FALSE(steps_.granted());
  ask = Ask(&steps_);
  EXPECT_EQ(ask.report.step, 1);
  EXPECT_EQ(ask.report.examples, 32);
}

TEST_F(StepMachineTest, Grant_CarriesItsLeasesToTheStepAndBack) {
  Ask(&steps_);
  StepReply reply = Reply(true);
  *reply.add_leases() = Lease(64, 32);
  *reply.add_leases() = Lease(96, 32);
  reply.mutable_pass()->set_first(50);
  ASSERT_EQ(steps_.OnAnswer(reply, kNow), Answer::kGranted);
  const StepGrant grant = steps_.Take().grant;
  ASSERT_EQ(grant.leases.size(), 2);
  EXPECT_EQ(grant.leases[1], Lease(96, 32));
  EXPECT_EQ(grant.pass.first(), 50);
  StepReport report;
  report.rows = grant.leases[0];
  steps_.OnTaken(report);
  EXPECT_EQ(Ask(&steps_).report.rows, Lease(64, 32));
}

TEST_F(StepMachineTest, NextGrant_TakesThePlaceOfTheLeasesOfTheLast) {
  Ask(&steps_);
  StepReply reply = Reply(true);
  *reply.add_leases() = Lease(64, 32);
  *reply.add_leases() = Lease(96, 32);
  steps_.OnAnswer(reply, kNow);
  steps_.Take();
  steps_.OnGivenUp();
  Ask(&steps_);
  reply.clear_leases();
  *reply.add_leases() = Lease(7, 32);
  steps_.OnAnswer(reply, kNow);
  const StepGrant grant = steps_.Take().grant;
  ASSERT_EQ(grant.leases.size(), 1);
  EXPECT_EQ(grant.leases[0], Lease(7, 32));
}

TEST_F(StepMachineTest, CheckGrant_WantsRowsOfWhatIsGranted) {
  EXPECT_THAT(CheckGrant(Reply(false)), IsOk());
  StepReply reply = Reply(true);
  EXPECT_THAT(CheckGrant(reply), StatusIs(absl::StatusCode::kInternal,
                                          HasSubstr("without a lease")));
  *reply.add_leases() = Lease(64, 32);
  EXPECT_THAT(CheckGrant(reply), IsOk());
  *reply.add_leases() = Lease(-1, 32);
  EXPECT_THAT(CheckGrant(reply), StatusIs(absl::StatusCode::kInternal,
                                          HasSubstr("32 rows from -1")));
  *reply.mutable_leases(1) = RowLease();
  EXPECT_THAT(CheckGrant(reply), StatusIs(absl::StatusCode::kInternal,
                                          HasSubstr("a lease of no rows")));
}

TEST_F(StepMachineTest, AnUnfinishedStepIsOwedUntilItIsTakenOrRestored) {
  TakeStep();
  ASSERT_EQ((Ask(&steps_), steps_.OnAnswer(Reply(true), kNow)),
            Answer::kGranted);
  steps_.Take();
  steps_.OnUnfinished("reset");
  EXPECT_FALSE(steps_.granted());
  EXPECT_TRUE(steps_.has_report());
  steps_.Leave();
  steps_.Enter(1, {7});
  EXPECT_TRUE(steps_.is_unfinished());
  EXPECT_EQ(steps_.DescribeUncounted(),
            "step 2 of this task is not counted, and may be in the parameters: "
            "reset");
  steps_.OnTaken(StepReport());
  EXPECT_FALSE(steps_.is_unfinished());
  EXPECT_EQ(Ask(&steps_).report.step, 2);
  EXPECT_EQ(steps_.DescribeUncounted(),
            "step 2 of this task may not be counted, and may be in the "
            "parameters: its report got no answer");
  steps_.OnUnfinished("reset");
  steps_.Restore(/*kept=*/0, /*first_ps_incarnation=*/8);
  EXPECT_FALSE(steps_.has_report());
}

// A step that is not reported is in no update.
TEST_F(StepMachineTest, OfAStepOfARoundNothingIsUncounted) {
  Ask(&steps_);
  StepReply reply = Reply(true);
  reply.mutable_token()->set_round(3);
  ASSERT_EQ(steps_.OnAnswer(reply, kNow), Answer::kGranted);
  steps_.Take();
  steps_.OnUnfinished("reset");
  EXPECT_EQ(steps_.DescribeUncounted(), "");
  steps_.OnTaken(StepReport());
  EXPECT_EQ(steps_.DescribeUncounted(), "");
}

TEST_F(StepMachineTest, AStepThatWasGivenUpIsReturned) {
  Ask(&steps_);
  steps_.OnAnswer(Reply(true), kNow);
  steps_.Take();
  steps_.OnGivenUp();
  const SendStep ask = Ask(&steps_);
  EXPECT_TRUE(ask.report.abandoned);
  EXPECT_EQ(ask.max_wait, absl::ZeroDuration());
  EXPECT_EQ(steps_.OnAnswer(Reply(false), kNow), Answer::kReturned);
  EXPECT_FALSE(steps_.has_report());
}

TEST_F(StepMachineTest, AGrantOfAnotherEpochGrantsNothing) {
  Ask(&steps_);
  StepReply other = Reply(true);
  other.set_model_epoch(2);
  EXPECT_EQ(steps_.OnAnswer(other, kNow), Answer::kRefused);
  EXPECT_FALSE(steps_.granted());
}

TEST_F(StepMachineTest, ALostPeerTakesTheGrantBack) {
  Ask(&steps_);
  steps_.OnAnswer(Reply(true), kNow);
  steps_.Leave();
  EXPECT_FALSE(steps_.granted());
  EXPECT_EQ(steps_.epoch(), 0);
  EXPECT_EQ(steps_.last_epoch(), 1);
}

TEST_F(StepMachineTest, ARefusedWorkerAsksAgainAfterASecondOrForNews) {
  Ask(&steps_);
  EXPECT_EQ(steps_.OnAnswer(Reply(false), kNow), Answer::kRefused);
  EXPECT_TRUE(steps_.IsRefused(/*state_version=*/1, kNow));
  EXPECT_FALSE(steps_.IsRefused(/*state_version=*/2, kNow));
  EXPECT_FALSE(steps_.IsRefused(/*state_version=*/1, steps_.ask_again_at()));
  EXPECT_EQ(steps_.ask_again_at(), kNow + absl::Seconds(1));
}

TEST_F(StepMachineTest, ARefusalThatHasWaitedIsFollowedAtOnce) {
  Ask(&steps_);
  steps_.OnAnswer(Reply(false), kNow + kWait);
  EXPECT_FALSE(steps_.IsRefused(/*state_version=*/1, kNow + kWait));
}

TEST_F(StepMachineTest, TellsWhatWentWithPsTaskZero) {
  for (int i = 0; i < 3; ++i) TakeStep();
  // The third is not acknowledged.
  EXPECT_EQ(steps_.Restore(/*kept=*/1, /*first_ps_incarnation=*/8), 1);
  EXPECT_FALSE(steps_.has_report());
}

TEST_F(StepMachineTest, LeavesItToTheChiefIfAnotherPsWasLost) {
  for (int i = 0; i < 3; ++i) TakeStep();
  EXPECT_EQ(steps_.Restore(/*kept=*/0, /*first_ps_incarnation=*/7), 0);
}

TEST_F(StepMachineTest, AnEpochIsItsNumberAndItsProcesses) {
  EXPECT_TRUE(steps_.IsLastEpoch(1, {7}));
  EXPECT_FALSE(steps_.IsLastEpoch(2, {7}));
  EXPECT_FALSE(steps_.IsLastEpoch(1, {8}));
}

}  // namespace
}  // namespace muster
