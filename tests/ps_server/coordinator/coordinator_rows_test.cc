// Which rows each step has, and what becomes of those that were not trained on.
#include <optional>
#include <string>
#include <vector>

#include "common/rows/row_ranges.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/coordinator_job.h"
#include "tests/ps_server/coordinator/row_text.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

const Sender kChief = MakeSender(0, 100);
const Sender kB = MakeSender(1, 101);
const Sender kC = MakeSender(2, 102);
const ReplicationSpec kAsync;

// Steps have 10 rows, epochs too.
class CoordinatorRowsTest : public testing::Test, protected CoordinatorJob {
 protected:
  static StopSpec StopAtRows(int64_t rows) {
    StopSpec stop;
    stop.set_epochs(static_cast<double>(rows) / kBatch);
    return stop;
  }

  // The leases that a Step is answered with: "refused", "waits".
  std::string Ask(const StepRequest& request) {
    const uint64_t id = Number(request.sender());
    EXPECT_THAT(Send(request, id), IsOk());
    last_ = Take(request.sender());
    if (!last_.has_value()) return "waits";
    return last_->granted() ? LeasesText(last_->leases()) : "refused";
  }
  std::string Ask(const Sender& sender, int64_t step = 0, int64_t round = 0) {
    return Ask(MakeStep(sender, step, round));
  }
  std::string AskAhead(const Sender& sender, int32_t ahead, int64_t step = 0,
                       int64_t round = 0) {
    StepRequest request = MakeStep(sender, step, round);
    request.set_leases_ahead(ahead);
    return Ask(request);
  }
  std::string AskForRows(const Sender& sender, int64_t rows, int64_t step = 0) {
    StepRequest request = MakeStep(sender, step);
    request.set_step_rows(rows);
    request.set_examples(step == 0 ? 0 : rows);
    return Ask(request);
  }

  void GiveUp(const Sender& sender, int64_t step, bool skips = false) {
    StepRequest request = MakeStep(sender, step);
    request.set_abandoned(true);
    request.set_skipped(skips);
    ASSERT_THAT(Send(request, Number(sender)), IsOk());
  }

  RowCounts Rows() { return coordinator().State().rows(); }
  JobPhase phase() { return coordinator().phase(); }
  std::string UndoneOfPause() {
    const auto reply = Hold(true);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? RangesText(reply->ledger().undone()) : "";
  }

  std::optional<StepReply> last_;
};

// ---- Without rounds -------------------------------------------------------

TEST_F(CoordinatorRowsTest, Grant_HasTheRowsOfItsStepAndOfThoseAhead) {
  Start(2, kAsync, StopAtStep(100));
  EXPECT_EQ(AskAhead(kB, 1), "0+10 10+10");
  EXPECT_EQ(Ask(kChief), "20+10");
  EXPECT_EQ(AskAhead(kB, 1), "0+10 10+10") << "it has a grant";
  EXPECT_EQ(AskAhead(kB, 1, 1), "10+10 30+10");
  EXPECT_EQ(Rows().done(), 10);
  EXPECT_EQ(Rows().leased(), 30);
  EXPECT_EQ(WorkerOf(0).leased_rows(), 10);
  EXPECT_EQ(WorkerOf(1).leased_rows(), 20);
}

TEST_F(CoordinatorRowsTest, RowsThatWereNeverLeased_AreRefusedWithoutEffect) {
  Start(2, kAsync, StopAtStep(100));
  AskAhead(kB, 1);
  const std::string before = coordinator().State().SerializeAsString();
  for (const RowLease& rows : {MakeLease(10, 10), MakeLease(0, 9),
                               MakeLease(0, 11), MakeLease(70, 10)}) {
    StepRequest report = MakeStep(kB, 1);
    *report.mutable_rows() = rows;
    EXPECT_THAT(Send(report, Number(kB)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("never leased")));
  }
  EXPECT_EQ(coordinator().State().SerializeAsString(), before);
  StepRequest report = MakeStep(kB, 1);
  *report.mutable_rows() = MakeLease(0, 10);
  EXPECT_EQ(Ask(report), "10+10");
  EXPECT_EQ(Rows().done(), 10);
}

TEST_F(CoordinatorRowsTest, ReportWithoutRows_IsOfTheFirstLease) {
  Start(1, kAsync, StopAtStep(100));
  Ask(kChief);
  EXPECT_EQ(Ask(kChief, 1), "10+10");
  EXPECT_EQ(Rows().done(), 10);
}

TEST_F(CoordinatorRowsTest, RowsThatAreGivenUp_AreDealtFirst) {
  Start(2, kAsync, StopAtStep(100));
  AskAhead(kChief, 1);
  GiveUp(kChief, 1);
  EXPECT_EQ(Rows().returned(), 10);
  EXPECT_EQ(Ask(kB), "0+10");
  EXPECT_EQ(Ask(kChief), "10+10") << "it has kept those ahead";
  EXPECT_EQ(Rows().repeated(), 0);
}

TEST_F(CoordinatorRowsTest, RowsThatAreSkipped_AreDealtToNobody) {
  Start(1, kAsync, StopAtRows(30));
  Ask(kChief);
  GiveUp(kChief, 1, /*skips=*/true);
  EXPECT_EQ(Ask(kChief), "10+10");
  EXPECT_EQ(Rows().skipped(), 10);
  EXPECT_EQ(Ask(kChief, 2), "20+10");
  EXPECT_EQ(Ask(kChief, 3), "refused");
  EXPECT_EQ(phase(), STOPPING);
  EXPECT_EQ(coordinator().global_step(), 2);
}

TEST_F(CoordinatorRowsTest, RowsOfALostWorker_AreDealtFirst) {
  Start(2, kAsync, StopAtStep(100));
  AskAhead(kB, 1);
  Ask(kChief);
  Pass(kTimeout, {kChief});
  EXPECT_EQ(Rows().returned(), 20);
  EXPECT_EQ(Rows().repeated(), 10) << "what it may have pushed in part";
  EXPECT_EQ(Ask(kChief, 1), "0+10");
  EXPECT_EQ(Ask(kB, 1), "10+10") << "its rows are the chief's: not counted";
  EXPECT_EQ(coordinator().global_step(), 1);
  EXPECT_EQ(Rows().repeated(), 10);
}

TEST_F(CoordinatorRowsTest, LostWorkerThatReportsInTime_Counts) {
  Start(2, kAsync, StopAtStep(100));
  Ask(kB);
  Pass(kTimeout, {kChief});
  StepRequest report = MakeStep(kB, 1);
  *report.mutable_rows() = MakeLease(0, 10);
  EXPECT_EQ(Ask(report), "10+10");
  EXPECT_EQ(Rows().done(), 10);
  EXPECT_EQ(Rows().repeated(), 0);
}

// A message of before comes late, and the worker goes on with its step.
TEST_F(CoordinatorRowsTest, LostWorkerThatIsHeardOf_HasItsRowsAgain) {
  Start(2, kAsync, StopAtStep(100));
  Ask(kB);
  Pass(kTimeout, {kChief});
  EXPECT_EQ(Ask(kB), "0+10");
  EXPECT_EQ(Ask(kB, 1), "10+10");
  Pass(kTimeout, {kChief});
  EXPECT_EQ(Ask(kChief), "10+10");
  EXPECT_EQ(Ask(kB, 1), "20+10") << "asks";
  StepRequest report = MakeStep(kB, 2);
  *report.mutable_rows() = MakeLease(10, 10);
  EXPECT_EQ(Ask(report), "20+10") << "not counted, not refused";
  EXPECT_EQ(coordinator().global_step(), 1);
}

TEST_F(CoordinatorRowsTest, RowsOfAReplacedStart_ComeBack) {
  Start(2, kAsync, StopAtStep(100));
  AskAhead(kB, 1);
  Register(MakeSender(1, 555));
  EXPECT_EQ(Rows().returned(), 20);
  EXPECT_EQ(Rows().repeated(), 10);
  EXPECT_EQ(Ask(MakeSender(1, 555)), "0+10");
}

TEST_F(CoordinatorRowsTest, RowsOfAWorkerThatLeaves_ComeBackUncounted) {
  Start(2, kAsync, StopAtStep(100));
  AskAhead(kB, 1);
  Finish(kB);
  EXPECT_EQ(Rows().returned(), 20);
  EXPECT_EQ(Rows().repeated(), 0);
}

TEST_F(CoordinatorRowsTest, TheEnd_WaitsForRowsThatOthersHave) {
  Start(2, kAsync, StopAtRows(29));
  EXPECT_EQ(Ask(kChief), "0+10");
  EXPECT_EQ(Ask(kB), "10+10");
  EXPECT_EQ(Ask(kChief, 1), "refused");
  EXPECT_EQ(phase(), RUNNING);
  ASSERT_EQ(last_->waiting_for_size(), 1);
  EXPECT_EQ(last_->waiting_for(0).index(), 1);
  EXPECT_EQ(last_->waiting_why(), "to train on the last rows of the job");
  const int64_t version = coordinator().state_version();
  GiveUp(kB, 1);
  EXPECT_GT(coordinator().state_version(), version) << "who waits is woken";
  EXPECT_EQ(Ask(kChief), "10+10");
  EXPECT_EQ(Ask(kChief, 2), "refused");
  EXPECT_EQ(phase(), STOPPING);
  EXPECT_EQ(coordinator().State().stop_reason(), "epochs");
  EXPECT_EQ(Rows().done(), 20);
}

TEST_F(CoordinatorRowsTest, RowsAheadOfASlowWorker_AreTheFastOnesAtTheEnd) {
  Start(2, kAsync, StopAtRows(60));
  EXPECT_EQ(AskAhead(kB, 3), "0+10 10+10 20+10 30+10");
  EXPECT_EQ(Ask(kChief), "40+10");
  EXPECT_EQ(Ask(kChief, 1), "50+10");
  for (int64_t step = 2; step <= 4; ++step) {
    EXPECT_EQ(Ask(kChief, step), absl::StrCat(step - 1, "0+10"));
  }
  EXPECT_EQ(Ask(kChief, 5), "refused");
  EXPECT_EQ(AskAhead(kB, 3, 1), "refused");
  EXPECT_EQ(phase(), STOPPING);
  EXPECT_EQ(Rows().done(), 60);
}

TEST_F(CoordinatorRowsTest, UnequalSteps_HaveLeasesOfTheirLength) {
  Start(2, kAsync, StopAtRows(33));
  EXPECT_EQ(AskForRows(kB, 4), "0+4");
  EXPECT_EQ(Ask(kChief), "4+10");
  EXPECT_EQ(Ask(kChief, 1), "14+10");
  EXPECT_EQ(Ask(kChief, 2), "refused") << "9 are left";
  EXPECT_EQ(phase(), RUNNING) << "they are two steps of B";
  EXPECT_EQ(AskForRows(kB, 4, 1), "24+4");
  EXPECT_EQ(AskForRows(kB, 4, 2), "28+4");
  EXPECT_EQ(AskForRows(kB, 4, 3), "refused");
  EXPECT_EQ(phase(), STOPPING);
  EXPECT_EQ(Rows().done(), 32);
  EXPECT_EQ(WorkerOf(1).examples(), 12);
}

TEST_F(CoordinatorRowsTest, ClocksThatAreTooFarAhead_KeepNoRowsFromTheSlowest) {
  Start(2, MakeBoundedSpec(0), StopAtRows(40));
  EXPECT_EQ(AskAhead(kB, 1), "0+10 10+10");
  EXPECT_EQ(AskAhead(kB, 1, 1), "waits");
  for (int64_t step = 0; step < 2; ++step) Ask(kChief, step);
  EXPECT_EQ(Take(kB)->granted(), true);
  EXPECT_EQ(phase(), RUNNING);
  AskAhead(kB, 1, 2);
  Ask(kChief, 2);
  EXPECT_EQ(phase(), STOPPING);
  EXPECT_EQ(Rows().done(), 40);
}

// ---- Rounds ---------------------------------------------------------------

TEST_F(CoordinatorRowsTest, RowsTooFewForTheSlowestClock_AreLeft) {
  ReplicationSpec lock_step;
  lock_step.mutable_bounded_staleness()->set_bound(0);
  Start(2, lock_step, StopAtRows(13));
  Ask(kChief);
  for (int64_t step = 0; step <= 1; ++step) AskForRows(kB, 1, step);
  Ask(kChief, 1);
  AskForRows(kB, 1, 2);
  EXPECT_EQ(phase(), STOPPING) << "1 row is left, the chief's steps have 10";
  EXPECT_EQ(Rows().done(), 12);
}

TEST_F(CoordinatorRowsTest, Round_DealsByIndexWhoeverAsksFirst) {
  Start(3, MakeSyncSpec(3, 3), StopAtStep(100));
  EXPECT_EQ(AskAhead(kC, 1), "20+10 50+10");
  EXPECT_EQ(AskAhead(kChief, 1), "0+10 30+10");
  EXPECT_EQ(AskAhead(kB, 1), "10+10 40+10");
  AskAhead(kB, 1, 1, 1);
  AskAhead(kC, 1, 1, 1);
  EXPECT_EQ(AskAhead(kChief, 1, 1, 1), "30+10 60+10");
  EXPECT_EQ(LeasesText(Take(kC)->leases()), "50+10 80+10");
}

TEST_F(CoordinatorRowsTest, Round_KeepsTheRowsOfWhoHasNotCome) {
  CoordinatorJob job(OptionsOf(2));
  job.Start(1, MakeSyncSpec(2, 2), StopAtStep(100));
  EXPECT_EQ(LeasesText(job.Step(kChief, 0)->leases()), "0+10");
  job.Register(kB);
  EXPECT_EQ(LeasesText(job.Step(kB, 0)->leases()), "10+10");
}

TEST_F(CoordinatorRowsTest, Round_LeasesNothingAheadOfWhoHasNotComeUnlisted) {
  Start(1, MakeSyncSpec(2, 2), StopAtStep(100));
  EXPECT_EQ(AskAhead(kChief, 1), "0+10");
  Register(kB);
  EXPECT_EQ(AskAhead(kB, 1), "10+10");
  AskAhead(kB, 1, 1, 1);
  EXPECT_EQ(AskAhead(kChief, 1, 1, 1), "20+10 40+10");
}

TEST_F(CoordinatorRowsTest, NothingIsLeasedAheadInTheLastRound) {
  Start(2, MakeSyncSpec(2, 2), StopAtRows(65));
  EXPECT_EQ(AskAhead(kChief, 1), "0+10 20+10");
  EXPECT_EQ(AskAhead(kB, 1), "10+10 30+10");
  AskAhead(kChief, 1, 1, 1);
  EXPECT_EQ(AskAhead(kB, 1, 1, 1), "30+10") << "20 and a rest are left";
  Take(kChief);
  AskAhead(kChief, 1, 2, 2);
  EXPECT_EQ(AskAhead(kB, 1, 2, 2), "50+10");
  Take(kChief);
  AskAhead(kB, 1, 3, 3);
  AskAhead(kChief, 1, 3, 3);
  EXPECT_EQ(phase(), STOPPING);
  EXPECT_EQ(Rows().done(), 60);
}

TEST_F(CoordinatorRowsTest, RowsOfADroppedGradient_AreTrainedOnAfterAll) {
  Start(3, MakeSyncSpec(2, 3), StopAtRows(60));
  for (const Sender& sender : {kChief, kB, kC}) Ask(sender);
  Ask(kB, 1, 1);
  EXPECT_EQ(Ask(kC, 1, 1), "40+10");
  EXPECT_EQ(Rows().done(), 20);
  EXPECT_EQ(Ask(kChief, 1, 1), "0+10") << "late: the same rows again";
  EXPECT_EQ(Rows().repeated(), 0);
  EXPECT_EQ(Rows().done(), 20);
}

TEST_F(CoordinatorRowsTest, RowsOfADeliveryThatIsNotChosen_ComeBack) {
  Start(3, MakeSyncSpec(2, 3), StopAtRows(60));
  for (const Sender& sender : {kChief, kB, kC}) Ask(sender);
  ASSERT_THAT(Hold(true), IsOk());
  for (const Sender& sender : {kC, kB, kChief}) Ask(sender, 1, 1);
  ASSERT_THAT(Hold(false), IsOk());
  EXPECT_EQ(WorkerOf(0).dropped_steps(), 1);
  EXPECT_EQ(Rows().done(), 20);
  EXPECT_EQ(LeasesText(Take(kChief)->leases()), "0+10");
}

// A copy of its question came when the round was closed.
TEST_F(CoordinatorRowsTest,
       LateWorkerThatIsInTheOpenRoundAlready_HasRowsThere) {
  Start(2, MakeSyncSpec(1, 2), StopAtStep(100));
  Ask(kChief);
  Ask(kB);
  Ask(kChief, 1, 1);
  Ask(kB);
  EXPECT_EQ(Ask(kB, 1, 1), "10+10");
}

// The answer that granted it was lost, and its rows with it.
TEST_F(CoordinatorRowsTest, GrantOfAClosedRoundThatNobodyHas_IsNoRowsOut) {
  Start(3, MakeSyncSpec(2, 3), StopAtRows(35));
  for (const Sender& sender : {kChief, kB, kC}) Ask(sender);
  Ask(kChief, 1, 1);
  Ask(kB, 1, 1);
  EXPECT_EQ(phase(), RUNNING) << "the third one may report late";
  EXPECT_EQ(Ask(kC), "refused");
  EXPECT_EQ(phase(), STOPPING);
  EXPECT_EQ(Rows().done(), 20);
}

// A copy of its question has given the rows back that it trains on.
TEST_F(CoordinatorRowsTest, LateReportOfRowsThatWereGivenBack_IsDropped) {
  Start(3, MakeSyncSpec(2, 3), StopAtRows(35));
  for (const Sender& sender : {kChief, kB, kC}) Ask(sender);
  StepRequest late = MakeStep(kC, 1, 1);
  *late.mutable_rows() = last_->leases(0);
  Ask(kChief, 1, 1);
  Ask(kB, 1, 1);
  Ask(kC);
  EXPECT_THAT(Send(late, Number(kC)), IsOk());
  EXPECT_EQ(Rows().done(), 20);
}

TEST_F(CoordinatorRowsTest, RowsOfADeliveredStep_AreDoneThoughItsWorkerDied) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(100));
  Ask(kChief);
  AskAhead(kB, 1);
  AskAhead(kB, 1, 1, 1);
  Pass(kTimeout, {kChief});
  EXPECT_EQ(WorkerOf(1).leased_rows(), 10) << "not those ahead";
  Ask(kChief, 1, 1);
  EXPECT_EQ(coordinator().global_step(), 1);
  EXPECT_EQ(Rows().done(), 20);
}

TEST_F(CoordinatorRowsTest, RowsOfAWithdrawnDelivery_ComeBack) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(100));
  Ask(kChief);
  Ask(kB);
  Ask(kB, 1, 1);
  Register(MakeSender(1, 555));
  EXPECT_EQ(Rows().returned(), 10);
  EXPECT_EQ(Rows().repeated(), 0) << "a round repeats none";
  EXPECT_EQ(Ask(MakeSender(1, 555)), "10+10");
}

TEST_F(CoordinatorRowsTest, WhoComesWhenNoRowsAreLeft_IsNotWaitedFor) {
  Start(3, MakeSyncSpec(3, 3), StopAtRows(45));
  for (const Sender& sender : {kChief, kB, kC}) Ask(sender);
  Ask(kChief, 1, 1);
  Ask(kB, 1, 1);
  Pass(kTimeout, {kChief, kB});
  EXPECT_EQ(coordinator().global_step(), 1);
  Ask(kChief, 1, 1);
  EXPECT_EQ(Ask(kB, 1, 1), "30+10");
  EXPECT_EQ(Rows().leased(), 20) << "5 are left";
  EXPECT_EQ(Ask(kC), "refused");
  EXPECT_EQ(last_->waiting_why(), "to train on the last rows of the job");
  Ask(kChief, 2, 2);
  Ask(kB, 2, 2);
  EXPECT_EQ(coordinator().global_step(), 2);
  EXPECT_EQ(phase(), STOPPING);
}

TEST_F(CoordinatorRowsTest, OpenRounds_AreOfThoseWhoAreThere) {
  Start(1, MakeSyncSpec(0, 0), StopAtStep(100));
  Ask(kChief);
  EXPECT_EQ(Ask(kChief, 1, 1), "10+10") << "alone";
  Register(kB);
  EXPECT_EQ(Ask(kB), "20+10");
  EXPECT_EQ(Ask(kChief, 2, 2), "waits");
  Ask(kB, 1, 2);
  EXPECT_EQ(coordinator().global_step(), 2);
  EXPECT_EQ(coordinator().State().update().workers(), 2);
  Finish(kB);
  EXPECT_TRUE(Take(kChief)->granted());
  EXPECT_NE(Ask(kChief, 3, 3), "waits");
}

TEST_F(CoordinatorRowsTest, RoundsThatAreOpenedForNothing_KeepTheirRows) {
  Start(1, MakeSyncSpec(1, 1), StopAtRows(20));
  Ask(kChief);
  GiveUp(kChief, 1);
  EXPECT_EQ(Ask(kChief), "0+10");
  Ask(kChief, 2, 1);
  Ask(kChief, 3, 2);
  EXPECT_EQ(phase(), STOPPING);
  EXPECT_EQ(Rows().done(), 20);
}

// ---- Cuts and restores ----------------------------------------------------

class CoordinatorRowsCutTest : public CoordinatorRowsTest {
 protected:
  void Begin() { Begin(++cuts_); }
  void Begin(int64_t cut) {
    BeginCutRequest request;
    request.set_cut(cut);
    *request.mutable_sender() = kChief;
    request.set_model_epoch(1);
    ASSERT_THAT(coordinator().BeginCut(request, now()), IsOk());
  }
  absl::StatusOr<ConfirmCutReply> Confirm(int64_t step) {
    ConfirmCutRequest request;
    *request.mutable_sender() = kChief;
    request.set_model_epoch(1);
    HeldStep& held = *request.add_held();
    *held.mutable_sender() = kB;
    held.set_step(step);
    held.mutable_counts()->set_steps(step);
    held.mutable_counts()->set_examples(step * kBatch);
    return coordinator().ConfirmCut(request, now());
  }
  std::string UndoneOf(int64_t step) {
    const auto reply = Confirm(step);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? RangesText(reply->ledger().undone()) : "";
  }

  int64_t cuts_ = 0;
};

TEST_F(CoordinatorRowsCutTest, StepsBehindTheCut_AreNotDone) {
  Start(2, kAsync, StopAtStep(100));
  for (int64_t step = 0; step <= 1; ++step) Ask(kB, step);
  Begin();
  for (int64_t step = 2; step <= 4; ++step) Ask(kB, step);
  EXPECT_EQ(UndoneOf(2), "20+30") << "steps 3 and 4, and the lease of 5";
  Ask(kB, 5);
  EXPECT_EQ(UndoneOf(2), "20+30") << "the answer was lost, and is the same";
}

TEST_F(CoordinatorRowsCutTest, CopyOfBeginCut_ForgetsNoStep) {
  Start(2, kAsync, StopAtStep(100));
  for (int64_t step = 0; step <= 1; ++step) Ask(kB, step);
  Begin();
  Ask(kB, 2);
  Begin(cuts_);
  EXPECT_EQ(UndoneOf(1), "10+20") << "step 2, and the lease of 3";
}

TEST_F(CoordinatorRowsCutTest, StepThatIsCountedBeforeItsReport_IsDone) {
  Start(2, kAsync, StopAtStep(100));
  Ask(kB);
  AskAhead(kB, 1, 1);
  Begin();
  EXPECT_EQ(UndoneOf(2), "20+10") << "the lease ahead";
  Pass(kTimeout, {kChief});
  EXPECT_EQ(coordinator().global_step(), 2);
  EXPECT_EQ(Rows().done(), 20);
  EXPECT_EQ(Rows().returned(), 10);
  EXPECT_EQ(Rows().repeated(), 0);
}

TEST_F(CoordinatorRowsCutTest, StepsThatSomeShardsHave_AreRepeated) {
  Start(2, kAsync, StopAtStep(100));
  AskForRows(kB, 4);
  Begin();
  AskForRows(kB, 4, 1);
  AskForRows(kB, 4, 2);
  ConfirmCutRequest request;
  *request.mutable_sender() = kChief;
  request.set_model_epoch(1);
  HeldStep& begun = *request.add_begun();
  *begun.mutable_sender() = kB;
  begun.set_step(2);
  auto reply = coordinator().ConfirmCut(request, now());
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->ledger().repeated(), 8) << "both reported";
  EXPECT_EQ(RangesText(reply->ledger().undone()), "0+12");
  Begin();
  request.mutable_begun(0)->set_step(3);
  reply = coordinator().ConfirmCut(request, now());
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->ledger().repeated(), 4) << "under way";
  EXPECT_EQ(Rows().repeated(), 0) << "no restore yet";
}

TEST_F(CoordinatorRowsCutTest, CutThatHasNotBegun_IsAborted) {
  Start(2, kAsync, StopAtStep(100));
  EXPECT_THAT(Confirm(1), StatusIs(absl::StatusCode::kAborted,
                                   HasSubstr("no cut has begun")));
  Begin();
  EXPECT_THAT(Confirm(1), IsOk());
  EXPECT_THAT(Confirm(2), StatusIs(absl::StatusCode::kAborted))
      << "another one than that which was answered";
}

TEST_F(CoordinatorRowsCutTest, JobWithRounds_HasNoCutToBegin) {
  Start(1, MakeSyncSpec(1, 1), StopAtStep(100));
  BeginCutRequest request;
  *request.mutable_sender() = kChief;
  request.set_model_epoch(1);
  EXPECT_THAT(coordinator().BeginCut(request, now()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(CoordinatorRowsTest, PausedRounds_HaveTheLedgerOfTheLastUpdate) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(100));
  Ask(kChief);
  Ask(kB);
  Ask(kB, 1, 1);
  EXPECT_EQ(UndoneOfPause(), "0+20") << "a delivery is no update";
  ASSERT_THAT(Hold(false), IsOk());
  Ask(kChief, 1, 1);
  EXPECT_EQ(UndoneOfPause(), "20+20");
}

TEST_F(CoordinatorRowsTest, Restore_GoesOnWithTheRest) {
  RowLedger ledger = MakeLedger(50);
  *ledger.add_undone() = MakeLease(5, 10).ranges(0);
  ledger.set_repeated(7);
  SetLedger(ledger);
  Start(1, kAsync, StopAtRows(70));
  EXPECT_EQ(Rows().done(), 40);
  EXPECT_EQ(Rows().repeated(), 7);
  EXPECT_EQ(Ask(kChief), "5+10");
  EXPECT_EQ(Ask(kChief, 1), "50+10");
  Ask(kChief, 2);
  Ask(kChief, 3);
  EXPECT_EQ(phase(), STOPPING);
}

TEST_F(CoordinatorRowsTest, LedgerThatOverlaps_IsRefused) {
  RowLedger ledger = MakeLedger(50);
  for (const int64_t first : {5, 8}) {
    *ledger.add_undone() = MakeLease(first, 10).ranges(0);
  }
  SetLedger(ledger);
  Register(kChief);
  EXPECT_THAT(Commit(kAsync, StopAtStep(100)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("commit epoch: ledger of rows")));
}

TEST_F(CoordinatorRowsTest, RestoreAtTheLimit_IsAtItsEnd) {
  SetLedger(MakeLedger(45));
  Start(1, kAsync, StopAtRows(50));
  EXPECT_EQ(phase(), STOPPING);
  EXPECT_EQ(coordinator().State().stop_reason(), "epochs");
}

TEST_F(CoordinatorRowsTest, Streams_AreToldWhereAPassBegins) {
  Start(2, kAsync, StopAtStep(100));
  StepRequest request = MakeStep(kChief, 0);
  Ask(request);
  request = MakeStep(kChief, 1);
  request.mutable_pass()->set_pass(1);
  request.mutable_pass()->set_first(7);
  EXPECT_EQ(Ask(request), "10+10");
  EXPECT_EQ(Ask(kB), "20+10");
  EXPECT_EQ(last_->pass().pass(), 1);
  EXPECT_EQ(last_->pass().first(), 7);
}

}  // namespace
}  // namespace muster
