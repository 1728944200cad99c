#include "ps_server/coordinator/job_evaluations.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

EvaluationHistory MakeHistory(int64_t step, double factor, int64_t from) {
  EvaluationHistory history;
  history.set_global_step(step);
  history.set_learning_rate_factor(factor);
  history.set_factor_from(from);
  return history;
}

TEST(JobEvaluationsTest, ALaterEvaluation_TakesThePlaceOfTheHeldOne) {
  JobEvaluations evaluations;
  evaluations.Adopt(MakeHistory(20, 0.5, 22));
  evaluations.Adopt(MakeHistory(10, 0.1, 12));
  EXPECT_EQ(evaluations.history().global_step(), 20);
  EXPECT_EQ(evaluations.FactorOf(21), 1);
  EXPECT_EQ(evaluations.FactorOf(22), 0.5);
}

TEST(JobEvaluationsTest, ARestoredHistory_TakesThePlaceOfALaterOne) {
  JobEvaluations evaluations;
  evaluations.Adopt(MakeHistory(20, 0.5, 22));
  ASSERT_EQ(evaluations.FactorOfRound(22), 0.5);
  evaluations.Restore(MakeHistory(10, 0, 0));
  EXPECT_EQ(evaluations.history().global_step(), 10);
  EXPECT_EQ(evaluations.FactorOfRound(22), 1);
}

// Its first workers may have their tokens already.
TEST(JobEvaluationsTest, AReportDuringARound_ChangesTheNextOneOnly) {
  JobEvaluations evaluations;
  ASSERT_EQ(evaluations.FactorOfRound(30), 1);
  evaluations.Adopt(MakeHistory(20, 0.5, 22));
  EXPECT_EQ(evaluations.FactorOfRound(30), 1);
  EXPECT_EQ(evaluations.FactorOfRound(31), 0.5);
}

TEST(JobEvaluationsTest, WhatIsNoHistory_IsRefused) {
  EXPECT_THAT(JobEvaluations::Check("step", MakeHistory(5, 0.5, 7)), IsOk());
  EvaluationHistory long_name = MakeHistory(5, 0.5, 7);
  long_name.mutable_stop()->set_metric(std::string(2000, 'm'));
  EvaluationHistory before = MakeHistory(5, 0.5, 7);
  before.set_learning_rate_factor_before(std::nan(""));
  for (const EvaluationHistory& bad :
       {MakeHistory(-1, 0.5, 7), MakeHistory(5, 0.5, -7),
        MakeHistory(5, -0.5, 7), MakeHistory(5, 1.5, 7),
        MakeHistory(5, std::nan(""), 7), before, long_name}) {
    EXPECT_THAT(JobEvaluations::Check("step", bad),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         testing::StartsWith("step: evaluations until step")));
  }
}

}  // namespace
}  // namespace muster
