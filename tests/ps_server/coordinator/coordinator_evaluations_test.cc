// The chief's evaluations at ps task 0, and what follows from them: the factor
// of the learning rate, and another end of the job.
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/coordinator_job.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const Sender kChief = MakeSender(0, 100);
const Sender kB = MakeSender(1, 101);

class CoordinatorEvaluationsTest : public testing::Test,
                                   protected CoordinatorJob {
 protected:
  static EvaluationHistory MakeHistory(int64_t step, double factor) {
    EvaluationHistory history;
    history.set_global_step(step);
    history.set_learning_rate_factor(factor);
    history.set_factor_from(step + 2);
    return history;
  }

  // As CoordinatorJob::Step, with the sender's evaluations.
  std::optional<StepReply> StepWith(const EvaluationHistory& history,
                                    const Sender& sender, int64_t step,
                                    int64_t round = 0) {
    StepRequest request = MakeStep(sender, step, round);
    *request.mutable_evaluations() = history;
    EXPECT_THAT(Send(request, Number(sender)), IsOk());
    return Take(sender);
  }

  double FactorOf(const std::optional<StepReply>& reply) {
    EXPECT_TRUE(reply.has_value() && reply->granted());
    return reply.has_value() ? reply->token().learning_rate_factor() : -1;
  }

  // The commit that a chief sends which attaches to the running job.
  absl::Status Attach(const Sender& chief, const StopSpec& stop) {
    CommitEpochRequest commit;
    *commit.mutable_sender() = chief;
    commit.set_model_epoch(coordinator().State().model_epoch());
    commit.set_resumes(true);
    commit.set_batch_size(kBatch);
    commit.set_epoch_examples(kBatch);
    *commit.mutable_stop() = stop;
    (*commit.mutable_ps_incarnations())[1] = 71;
    const absl::Status status =
        coordinator().CommitEpoch(commit, now()).status();
    Settle();
    return status;
  }
};

TEST_F(CoordinatorEvaluationsTest, TheChiefsReport_IsInTheStateAndTheGrants) {
  Start(2, ReplicationSpec(), StopAtStep(100));
  Step(kChief, 0);
  EXPECT_FALSE(coordinator().State().has_evaluations());
  EXPECT_EQ(FactorOf(StepWith(MakeHistory(1, 0.1), kChief, 1)), 0)
      << "update 2 may be under way";
  EXPECT_EQ(coordinator().State().evaluations().global_step(), 1);
  EXPECT_EQ(FactorOf(Step(kB, 0)), 0);
  EXPECT_EQ(FactorOf(Step(kB, 1)), 0.1);
}

TEST_F(CoordinatorEvaluationsTest, ReportsOfOthersAndOldOnes_ChangeNothing) {
  Start(2, ReplicationSpec(), StopAtStep(100));
  StepWith(MakeHistory(1, 0.1), kB, 0);
  EXPECT_FALSE(coordinator().State().has_evaluations());
  StepWith(MakeHistory(5, 0.1), kChief, 0);
  StepWith(MakeHistory(4, 0.5), kChief, 0);
  EXPECT_EQ(coordinator().State().evaluations().global_step(), 5);
  StepRequest late = MakeStep(kChief, 0);
  late.set_model_epoch(99);
  *late.mutable_evaluations() = MakeHistory(9, 0.5);
  ASSERT_THAT(Send(late, 77), IsOk());
  EXPECT_EQ(coordinator().State().evaluations().global_step(), 5);
}

TEST_F(CoordinatorEvaluationsTest, AHistoryThatIsNone_IsRefused) {
  Start(1, ReplicationSpec(), StopAtStep(100));
  StepRequest request = MakeStep(kChief, 0);
  *request.mutable_evaluations() = MakeHistory(1, 7);
  EXPECT_THAT(Send(request, 5), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("factor 7")));
}

// The chief reports while the others have begun the round.
TEST_F(CoordinatorEvaluationsTest, InARound_AllWorkersHaveOneFactor) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(100), /*global_step=*/10);
  ASSERT_EQ(FactorOf(Step(kB, 0)), 0);
  EXPECT_EQ(FactorOf(StepWith(MakeHistory(7, 0.5), kChief, 0)), 0)
      << "round 11 was begun without it";
  EXPECT_FALSE(Step(kB, 1, 11).has_value());
  EXPECT_EQ(FactorOf(Step(kChief, 1, 11)), 0.5);
  EXPECT_EQ(FactorOf(Take(kB)), 0.5);
}

TEST_F(CoordinatorEvaluationsTest, InBoundedStaleness_AGrantHasItsUpdates) {
  Start(2, MakeBoundedSpec(3), StopAtStep(100), /*global_step=*/10);
  ASSERT_EQ(FactorOf(StepWith(MakeHistory(10, 0.5), kChief, 0)), 0);
  EXPECT_EQ(FactorOf(Step(kChief, 1)), 0.5);
}

TEST_F(CoordinatorEvaluationsTest, AnotherEpoch_HasTheCommitsEvaluations) {
  Start(1, ReplicationSpec(), StopAtStep(100));
  StepWith(MakeHistory(9, 0.1), kChief, 0);
  ASSERT_THAT(Commit(ReplicationSpec(), StopAtStep(100), 4), IsOk());
  EXPECT_FALSE(coordinator().State().has_evaluations());
  EXPECT_EQ(FactorOf(Step(kChief, 0)), 0);
}

// ---- A chief that attaches --------------------------------------------------

TEST_F(CoordinatorEvaluationsTest, AnEarlierStop_EndsTheJobAtOnce) {
  Start(1, ReplicationSpec(), StopAtStep(100), /*global_step=*/20);
  const Sender again = MakeSender(0, 103);
  Register(again);
  ASSERT_THAT(Attach(again, StopAtStep(10)), IsOk());
  EXPECT_EQ(coordinator().phase(), STOPPING);
  EXPECT_EQ(coordinator().State().stop_reason(), "steps");
  EXPECT_EQ(coordinator().State().stop().steps(), 10);
  EXPECT_THAT(coordinator().TakeLines(),
              Contains(HasSubstr("other stop conditions")));
}

TEST_F(CoordinatorEvaluationsTest, ALaterStop_TakesTheSteps) {
  Start(1, ReplicationSpec(), StopAtStep(21), /*global_step=*/20);
  const Sender again = MakeSender(0, 103);
  Register(again);
  ASSERT_THAT(Attach(again, StopAtStep(22)), IsOk());
  EXPECT_TRUE(Step(again, 0)->granted());
  EXPECT_TRUE(Step(again, 1)->granted());
  EXPECT_FALSE(Step(again, 2)->granted());
  EXPECT_EQ(coordinator().global_step(), 22);
  EXPECT_EQ(coordinator().phase(), STOPPING);
}

TEST_F(CoordinatorEvaluationsTest, AnEarlierStop_EndsBehindTheStepsUnderWay) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(100), /*global_step=*/20);
  ASSERT_TRUE(Step(kChief, 0)->granted());
  ASSERT_TRUE(Step(kB, 0)->granted());
  ASSERT_THAT(Attach(kChief, StopAtStep(10)), IsOk());
  EXPECT_EQ(coordinator().phase(), RUNNING);
  Step(kChief, 1, 21);
  Step(kB, 1, 21);
  EXPECT_EQ(coordinator().global_step(), 21);
  EXPECT_EQ(coordinator().phase(), STOPPING);
}

TEST_F(CoordinatorEvaluationsTest, TheSameStop_IsARepeatWithoutNews) {
  Start(1, ReplicationSpec(), StopAtStep(100));
  const int64_t version = coordinator().state_version();
  ASSERT_THAT(Attach(kChief, StopAtStep(100)), IsOk());
  EXPECT_EQ(coordinator().state_version(), version);
}

TEST_F(CoordinatorEvaluationsTest, AStopThatPs0DoesNotCount_GoesOn) {
  Start(1, ReplicationSpec(), StopAtStep(100));
  EXPECT_THAT(Attach(kChief, StopSpec()), IsOk());
  StopSpec plateau;
  plateau.mutable_plateau()->set_patience(1);
  EXPECT_THAT(Attach(kChief, plateau), IsOk());
  EXPECT_EQ(coordinator().phase(), RUNNING);
}

}  // namespace
}  // namespace muster
