// Who may take how many steps, and what is counted of them.
#include <functional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/ask_step.h"
#include "tests/ps_server/coordinator/coordinator_fixture.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

using CoordinatorStepsTest = CoordinatorTest;

TEST_F(CoordinatorStepsTest, GrantsExactlyTheStepsThatAreLeft) {
  StartRun(2, 3);
  EXPECT_TRUE(Step(chief_, 0).granted());
  EXPECT_TRUE(Step(worker_, 0).granted());
  EXPECT_TRUE(Step(chief_, 1).granted());    // 1 done, 2 out
  EXPECT_FALSE(Step(worker_, 1).granted());  // 2 done, 1 out
  EXPECT_EQ(coordinator_.phase(), RUNNING);
  const StepReply last = Step(chief_, 2);
  EXPECT_FALSE(last.granted());
  EXPECT_EQ(last.global_step(), 3);
  EXPECT_EQ(last.phase(), STOPPING);
  EXPECT_EQ(coordinator_.State().stop_reason(), "steps");
}

TEST_F(CoordinatorStepsTest, GrantsWholeBatchesOfTheEpochs) {
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_THAT(Begin(chief_), IsOk());
  CommitEpochRequest commit = MakeCommit(chief_, 1, 0);
  commit.mutable_stop()->set_epochs(2.5);
  commit.set_epoch_examples(10);  // 25 examples: 2 batches of 10
  ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  epoch_ = 1;
  EXPECT_TRUE(Step(chief_, 0).granted());
  EXPECT_TRUE(Step(chief_, 1).granted());
  const StepReply last = Step(chief_, 2);
  EXPECT_FALSE(last.granted());
  EXPECT_EQ(last.phase(), STOPPING);
  EXPECT_EQ(coordinator_.State().stop_reason(), "epochs");
}

TEST_F(CoordinatorStepsTest, ARestoreAtTheLimitStopsAtOnce) {
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_THAT(Begin(chief_), IsOk());
  CommitEpochRequest commit = MakeCommit(chief_, 1, 100);
  commit.set_global_step(100);
  const auto reply = coordinator_.CommitEpoch(commit, now_);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->state().phase(), STOPPING);
}

TEST_F(CoordinatorStepsTest, ARepeatedReportCountsOnceAndKeepsTheGrant) {
  StartRun(1, 10);
  EXPECT_TRUE(Step(chief_, 0).granted());
  for (int i = 0; i < 5; ++i) {
    const StepReply reply = Step(chief_, 1);
    EXPECT_TRUE(reply.granted());
    EXPECT_EQ(reply.global_step(), 1);
    EXPECT_EQ(coordinator_.outstanding_grants(), 1);
  }
  EXPECT_EQ(coordinator_.State().workers(0).steps(), 1);
}

TEST_F(CoordinatorStepsTest, AReportOfAnotherEpochCountsNothing) {
  StartRun(1, 10);
  EXPECT_TRUE(Step(chief_, 0).granted());
  StepRequest old = MakeStep(chief_, 1);
  old.set_model_epoch(epoch_ - 1);
  const auto reply = AskStep(coordinator_, old, now_);
  ASSERT_THAT(reply, IsOk());
  EXPECT_FALSE(reply->granted());
  EXPECT_EQ(reply->model_epoch(), epoch_);
  EXPECT_EQ(reply->global_step(), 0);
}

TEST_F(CoordinatorStepsTest, AnAbandonedStepReturnsItsGrantAndWakesWhoWaits) {
  StartRun(2, 1);
  EXPECT_TRUE(Step(chief_, 0).granted());
  EXPECT_FALSE(Step(worker_, 0).granted());
  ASSERT_THAT(Watch(worker_, coordinator_.state_version(), absl::Seconds(5)),
              IsOk());
  EXPECT_TRUE(coordinator_.TakeAnswers(now_).empty());
  EXPECT_FALSE(Abandon(chief_, 1).granted());
  EXPECT_EQ(coordinator_.TakeAnswers(now_).size(), 1);
  EXPECT_TRUE(Step(worker_, 0).granted());
  // A late repeat of the abandonment takes nobody's grant.
  Abandon(chief_, 1);
  EXPECT_EQ(coordinator_.outstanding_grants(), 1);
  EXPECT_EQ(Step(worker_, 1).phase(), STOPPING);
}

TEST_F(CoordinatorStepsTest, TheGrantOfALostWorkerReturns) {
  StartRun(2, 1);
  EXPECT_TRUE(Step(worker_, 0).granted());
  EXPECT_FALSE(Step(chief_, 0).granted());
  Pass(kTimeout, {chief_});
  EXPECT_TRUE(coordinator_.State().workers(1).lost());
  EXPECT_TRUE(Step(chief_, 0).granted());
  // It comes back with its step when all are in other hands: not counted.
  EXPECT_EQ(Step(worker_, 1).global_step(), 0);
  EXPECT_FALSE(coordinator_.State().workers(1).lost());
  EXPECT_EQ(Step(chief_, 1).global_step(), 1);
}

TEST_F(CoordinatorStepsTest, TheGrantOfAReplacedIncarnationReturns) {
  StartRun(2, 1);
  EXPECT_TRUE(Step(worker_, 0).granted());
  ASSERT_THAT(Register(MakeSender(1, 555)), IsOk());
  EXPECT_EQ(coordinator_.outstanding_grants(), 0);
  EXPECT_TRUE(Step(chief_, 0).granted());
}

TEST_F(CoordinatorStepsTest, CollectsStatisticsForTheResult) {
  StartRun(1, 100);
  Step(chief_, 0);
  Step(chief_, 1);
  now_ += absl::Seconds(3);
  Step(chief_, 2);
  const WorkerState state = coordinator_.State().workers(0);
  EXPECT_EQ(state.steps(), 2);
  EXPECT_EQ(state.examples(), 20);
  EXPECT_EQ(state.last_loss(), 0.5);
  EXPECT_EQ(state.active_s(), 3);
  EXPECT_EQ(state.staleness_sum(), 2);
  EXPECT_EQ(state.staleness_count(), 2);
}

TEST_F(CoordinatorStepsTest, TheRateIsThatOfOneIncarnation) {
  StartRun(1, 100);
  Step(chief_, 0);
  for (int64_t step = 1; step <= 5; ++step) {
    now_ += absl::Seconds(1);
    Step(chief_, step);
  }
  EXPECT_EQ(coordinator_.State().workers(0).active_steps(), 4);
  const Sender again = MakeSender(0, 200);
  ASSERT_THAT(Register(again), IsOk());
  Step(again, 0);
  Step(again, 1);
  now_ += absl::Seconds(1);
  Step(again, 2);
  const WorkerState state = coordinator_.State().workers(0);
  EXPECT_EQ(state.steps(), 7);
  EXPECT_EQ(state.active_steps(), 1);
  EXPECT_EQ(state.active_s(), 1);
}

TEST_F(CoordinatorStepsTest, TheRateIsThatOfOneEpoch) {
  StartRun(1, 100);
  Step(chief_, 0);
  Step(chief_, 1);
  now_ += absl::Seconds(50);
  const auto begun = Begin(chief_);
  ASSERT_THAT(begun, IsOk());
  epoch_ = begun->model_epoch();
  ASSERT_THAT(coordinator_.CommitEpoch(MakeCommit(chief_, epoch_, 100), now_),
              IsOk());
  Step(chief_, 0);
  Step(chief_, 2);
  now_ += absl::Seconds(1);
  Step(chief_, 3);
  EXPECT_EQ(coordinator_.State().workers(0).active_steps(), 1);
  EXPECT_EQ(coordinator_.State().workers(0).active_s(), 1);
}

// Whoever is in no list any more has taken the rest.
TEST_F(CoordinatorStepsTest, ExamplesAreThoseOfTheWholeRun) {
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_THAT(Begin(chief_), IsOk());
  CommitEpochRequest commit = MakeCommit(chief_, 1, 0);
  commit.mutable_stop()->set_epochs(1);
  commit.set_epoch_examples(60);
  commit.set_examples(40);
  commit.mutable_ledger()->set_front(40);
  WorkerState* const saved = commit.add_workers();
  *saved->mutable_sender() = chief_;
  saved->set_examples(10);
  ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  epoch_ = 1;
  EXPECT_EQ(coordinator_.State().examples(), 40);
  Step(chief_, 0);
  Step(chief_, 1);
  Step(chief_, 2);
  const JobState state = coordinator_.State();
  EXPECT_EQ(state.examples(), 60);
  EXPECT_EQ(state.workers(0).examples(), 30);
  EXPECT_EQ(state.phase(), STOPPING);
}

TEST_F(CoordinatorStepsTest, CountsHowOftenEachStalenessOccurs) {
  StartRun(2, 100);
  int64_t step = 0;
  for (const int64_t staleness : {2, 0, 2, 64, 1000}) {
    Step(chief_, 0);
    StepRequest request = MakeStep(chief_, ++step);
    request.set_staleness(staleness);
    ASSERT_THAT(AskStep(coordinator_, request, now_), IsOk());
    // The same report again counts nothing.
    ASSERT_THAT(AskStep(coordinator_, request, now_), IsOk());
  }
  const JobState state = coordinator_.State();
  std::vector<int64_t> expected(65, 0);
  expected[0] = 1;
  expected[2] = expected[64] = 2;
  EXPECT_THAT(state.staleness_counts(), ElementsAreArray(expected));

  const auto begun = Begin(chief_);
  ASSERT_THAT(begun, IsOk());
  ASSERT_THAT(coordinator_.CommitEpoch(
                  MakeCommit(chief_, begun->model_epoch(), 100), now_),
              IsOk());
  EXPECT_EQ(coordinator_.State().staleness_counts_size(), 0);
}

TEST_F(CoordinatorStepsTest, MoreExamplesThanRowsOfTheStep_AreRefused) {
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_THAT(Begin(chief_), IsOk());
  CommitEpochRequest commit = MakeCommit(chief_, 1, 100);
  commit.set_epoch_examples(40);
  ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  epoch_ = 1;
  Step(chief_, 0);
  StepRequest request = MakeStep(chief_, 1);
  request.set_examples(11);
  EXPECT_THAT(AskStep(coordinator_, request, now_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("examples 11, of 10 rows")));
  EXPECT_EQ(coordinator_.global_step(), 0);
}

TEST_F(CoordinatorStepsTest, RefusesNumbersOutOfRange) {
  StartRun(1, 100);
  Step(chief_, 0);
  for (const auto& spoil : std::vector<std::function<void(StepRequest&)>>{
           [](StepRequest& r) { r.set_step(-1); },
           [](StepRequest& r) { r.set_examples(-1); },
           // Nobody knows how many rows there are.
           [](StepRequest& r) { r.set_examples((int64_t{1} << 31) + 1); },
           [](StepRequest& r) { r.set_staleness(-1); },
           [](StepRequest& r) { r.set_step_rows(-1); },
           [](StepRequest& r) { r.set_leases_ahead(1'000'000); },
           [](StepRequest& r) { r.mutable_pass()->set_first(-1); }}) {
    StepRequest request = MakeStep(chief_, 1);
    spoil(request);
    EXPECT_THAT(AskStep(coordinator_, request, now_),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("out of range")));
  }
  EXPECT_EQ(coordinator_.global_step(), 0);
}

}  // namespace
}  // namespace muster
