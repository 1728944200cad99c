#include "ps_server/coordinator/step_gate.h"

#include <memory>
#include <set>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Time kNow = absl::UnixEpoch();
const TaskKey kChief = {"worker", 0};
const TaskKey kB = {"worker", 1};

// A gate before a job of two workers and three steps.
class StepGateTest : public testing::Test {
 protected:
  CommitEpochRequest MakeCommit() {
    CommitEpochRequest commit;
    commit.set_model_epoch(4);
    commit.mutable_stop()->set_steps(3);
    return commit;
  }

  CommitEpochRequest MakeSyncCommit(int aggregate, int total) {
    CommitEpochRequest commit = MakeCommit();
    SyncReplication& sync = *commit.mutable_replication()->mutable_sync();
    sync.set_replicas_to_aggregate(aggregate);
    sync.set_total_replicas(total);
    return commit;
  }

  CommitEpochRequest MakeClocksCommit(int bound) {
    CommitEpochRequest commit = MakeCommit();
    commit.mutable_replication()->mutable_bounded_staleness()->set_bound(bound);
    return commit;
  }

  absl::Status Open(const CommitEpochRequest& commit) {
    leases_.Start({}, kMaxCount, /*step_rows=*/0);
    auto gate = StepGate::Create(
        commit, {&budget_, &leases_, [this] { return live_; }, {}},
        /*known=*/{}, /*assembled_at=*/absl::InfinitePast());
    if (!gate.ok()) return gate.status();
    gate_ = *std::move(gate);
    gate_->SeeLive(kNow);
    return absl::OkStatus();
  }

  bool TryEnter(const TaskKey& task, StepPause pause = StepPause::kNone) {
    return gate_->TryEnter(task, pause);
  }

  static StepRequest MakeReport(const TaskKey& task, int64_t round = 0) {
    StepRequest report;
    *report.mutable_sender() = MakeSender(task.second, 100);
    report.set_step(1);
    report.set_round(round);
    report.set_examples(10);
    return report;
  }

  DecidedSteps Report(const TaskKey& task, int64_t round = 0) {
    return gate_->Report(MakeReport(task, round), kNow);
  }

  StepBudget budget_;
  RowLeases leases_;
  std::set<TaskKey> live_ = {kChief, kB};
  std::unique_ptr<StepGate> gate_;
};

TEST_F(StepGateTest, AFreeOneLetsEverybodyInWhileTheBudgetLasts) {
  ASSERT_THAT(Open(MakeCommit()), IsOk());
  EXPECT_TRUE(TryEnter(kChief));
  EXPECT_TRUE(TryEnter(kChief)) << "it has one";
  EXPECT_EQ(budget_.outstanding(), 1);
  EXPECT_TRUE(TryEnter(kB));
  EXPECT_EQ(Report(kB).chosen.size(), 1u);
  EXPECT_EQ(budget_.steps(), 1);
  EXPECT_TRUE(TryEnter(kB));
  EXPECT_FALSE(TryEnter({"worker", 2}));
  EXPECT_FALSE(gate_->MayWait());
  EXPECT_TRUE(gate_->Leave(kChief, LeaveReason::kGivesUp));
  EXPECT_FALSE(gate_->Leave(kChief, LeaveReason::kGivesUp)) << "it has none";
  EXPECT_TRUE(TryEnter({"worker", 2}));
}

TEST_F(StepGateTest, AReportWithoutAGrantCountsOnlyIfOneIsLeft) {
  ASSERT_THAT(Open(MakeCommit()), IsOk());
  EXPECT_EQ(Report(kChief).chosen.size(), 1u);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(TryEnter({"worker", i}));
  EXPECT_EQ(Report({"worker", 2}).chosen.size(), 0u);
  EXPECT_EQ(budget_.steps(), 1);
}

TEST_F(StepGateTest, NobodyBeginsWhileStepsArePaused) {
  for (const CommitEpochRequest& commit :
       {MakeCommit(), MakeClocksCommit(1), MakeSyncCommit(2, 2)}) {
    ASSERT_THAT(Open(commit), IsOk());
    EXPECT_FALSE(TryEnter(kChief, StepPause::kNewSteps));
    EXPECT_FALSE(TryEnter(kChief, StepPause::kAll));
    ASSERT_TRUE(TryEnter(kChief));
    EXPECT_TRUE(TryEnter(kChief, StepPause::kAll)) << "it had begun";
  }
}

TEST_F(StepGateTest, OnlyRoundsTakeReportsOfRounds) {
  for (const CommitEpochRequest& commit : {MakeCommit(), MakeClocksCommit(1)}) {
    ASSERT_THAT(Open(commit), IsOk());
    EXPECT_EQ(gate_->rounds(), nullptr);
    EXPECT_THAT(gate_->CheckReport(MakeReport(kB)), IsOk());
    EXPECT_THAT(gate_->CheckReport(MakeReport(kB, 1)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("has no rounds")));
  }
  ASSERT_THAT(Open(MakeSyncCommit(2, 2)), IsOk());
  EXPECT_THAT(gate_->CheckReport(MakeReport(kB, 1)), IsOk());
  for (const int64_t round : {0, 2}) {
    EXPECT_THAT(gate_->CheckReport(MakeReport(kB, round)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("wanted one that was given out, 1 to 1")));
  }
}

TEST_F(StepGateTest, ARoundIsOneGrantAndDecidesAllItsSteps) {
  ASSERT_THAT(Open(MakeSyncCommit(2, 2)), IsOk());
  EXPECT_TRUE(TryEnter(kChief));
  EXPECT_TRUE(TryEnter(kB, StepPause::kNewSteps)) << "the round is open";
  EXPECT_EQ(budget_.outstanding(), 1);
  EXPECT_TRUE(Report(kChief, 1).dropped.empty());
  EXPECT_FALSE(TryEnter(kChief)) << "it has delivered";
  EXPECT_TRUE(gate_->MayWait());
  EXPECT_THAT(gate_->Explain(kChief, kChief).waiting_for, ElementsAre(kB));
  EXPECT_TRUE(gate_->TryClose(kNow).chosen.empty());
  Report(kB, 1);
  EXPECT_EQ(gate_->TryClose(kNow).chosen.size(), 2u);
  EXPECT_EQ(budget_.steps(), 1);
  EXPECT_EQ(budget_.examples(), 20);
  EXPECT_EQ(Report(kB, 1).dropped.size(), 1u) << "late by a round";
}

TEST_F(StepGateTest, ARoundThatEverybodyLeavesGivesItsGrantBack) {
  ASSERT_THAT(Open(MakeSyncCommit(2, 2)), IsOk());
  ASSERT_TRUE(TryEnter(kChief));
  EXPECT_FALSE(gate_->Leave(kChief, LeaveReason::kGivesUp))
      << "the round is others' too";
  gate_->TryClose(kNow);
  EXPECT_EQ(budget_.outstanding(), 0);
}

TEST_F(StepGateTest, NoRoundTakesAStepAfterTheEnd) {
  ASSERT_THAT(Open(MakeSyncCommit(1, 2)), IsOk());
  ASSERT_TRUE(TryEnter(kChief));
  gate_->End();
  EXPECT_EQ(Report(kChief, 1).dropped.size(), 1u);
}

TEST_F(StepGateTest, AHeldRoundWaitsForTheChief) {
  ASSERT_THAT(Open(MakeSyncCommit(1, 2)), IsOk());
  ASSERT_TRUE(TryEnter(kB));
  Report(kB, 1);
  gate_->rounds()->Hold(kNow);
  EXPECT_TRUE(gate_->TryClose(kNow).chosen.empty());
  const StepWait wait = gate_->Explain(kB, kChief);
  EXPECT_THAT(wait.waiting_for, ElementsAre(kChief));
  EXPECT_EQ(wait.why, "to cut a checkpoint after step 0");
  EXPECT_EQ(gate_->NextDeadline(), kNow + StepRounds::kLongestHold);
}

TEST_F(StepGateTest, ClocksStopWhoIsTooFarAhead) {
  ASSERT_THAT(Open(MakeClocksCommit(0)), IsOk());
  ASSERT_TRUE(TryEnter(kChief));
  EXPECT_EQ(Report(kChief).chosen.size(), 1u);
  EXPECT_FALSE(TryEnter(kChief));
  EXPECT_TRUE(gate_->MayWait());
  const StepWait wait = gate_->Explain(kChief, kChief);
  EXPECT_THAT(wait.waiting_for, ElementsAre(kB));
  EXPECT_THAT(wait.why, HasSubstr("to finish its step 1"));
  live_ = {kChief};
  gate_->SeeLive(kNow);
  EXPECT_TRUE(TryEnter(kChief)) << "nobody is behind";
}

TEST_F(StepGateTest, ClocksNameWhoHasTheLastSteps) {
  ASSERT_THAT(Open(MakeClocksCommit(5)), IsOk());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(TryEnter(kChief));
    Report(kChief);
  }
  ASSERT_TRUE(TryEnter(kB));
  EXPECT_FALSE(TryEnter(kChief));
  const StepWait wait = gate_->Explain(kChief, kChief);
  EXPECT_THAT(wait.waiting_for, ElementsAre(kB));
  EXPECT_EQ(wait.why, "to report the last steps of the job");
}

TEST_F(StepGateTest, ATokenSaysForHowLongValuesServe) {
  ASSERT_THAT(Open(MakeClocksCommit(2)), IsOk());
  for (int clock = 0; clock < 2; ++clock) {
    ASSERT_TRUE(TryEnter(kChief));
    EXPECT_EQ(gate_->TokenFor(kChief).clock(), clock);
    EXPECT_EQ(gate_->TokenFor(kChief).values_until_clock(), 2);
    Report(kChief);
  }
  ASSERT_TRUE(TryEnter(kB));
  Report(kB);
  // The slowest clock is 1 now.
  EXPECT_EQ(gate_->TokenFor(kChief).clock(), 2);
  EXPECT_EQ(gate_->TokenFor(kChief).values_until_clock(), 3);
}

TEST_F(StepGateTest, RefusesAReplicationByItsField) {
  EXPECT_THAT(Open(MakeSyncCommit(3, 2)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("commit epoch 4: replication.sync")));
  EXPECT_THAT(Open(MakeClocksCommit(-1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("commit epoch 4: replication.bounded")));
}

}  // namespace
}  // namespace muster
