#include "worker/hook/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EvaluationTest : public ::testing::Test {
 protected:
  Evaluation Make(int64_t every_steps) {
    return Evaluation(
        every_steps,
        [this]() -> absl::StatusOr<EvaluationResult> {
          ++runs_;
          if (!error_.ok()) return error_;
          return EvaluationResult{100, 0.3, {{{"accuracy", 0.9}}, {}}};
        },
        lines_.reporter());
  }
  static StepRecord At(int64_t global_step) {
    StepRecord step;
    step.global_step = global_step;
    return step;
  }

  int runs_ = 0;
  absl::Status error_;
  ReportedLines lines_;
};

TEST_F(EvaluationTest, RunsWhenAMultipleOfThePeriodWasPassed) {
  Evaluation evaluation = Make(10);
  for (const int64_t step : {3, 9, 12, 19, 21}) {
    ASSERT_THAT(evaluation.AfterStep(At(step)), IsOk());
  }
  EXPECT_EQ(runs_, 2);
}

TEST_F(EvaluationTest, RunsOnlyAtTheEndByDefault) {
  Evaluation evaluation = Make(0);
  ASSERT_THAT(evaluation.AfterStep(At(1000)), IsOk());
  EXPECT_EQ(runs_, 0);
  EndRecord end;
  end.completed = true;
  end.global_step = 1000;
  ASSERT_THAT(evaluation.AtEnd(end), IsOk());
  EXPECT_THAT(lines_.lines(),
              ElementsAre("I step=1000 test_accuracy=0.9000 test_loss=0.3000"));
  EXPECT_EQ(evaluation.result()->metrics.Find("accuracy"), 0.9);
}

TEST_F(EvaluationTest, SkipsTheEndAfterASignal) {
  Evaluation evaluation = Make(0);
  ASSERT_THAT(evaluation.AtEnd(EndRecord()), IsOk());
  EXPECT_EQ(runs_, 0);
}

TEST_F(EvaluationTest, FailureAtTheEndLeavesNoOlderResult) {
  Evaluation evaluation = Make(1);
  ASSERT_THAT(evaluation.AfterStep(At(1)), IsOk());
  ASSERT_TRUE(evaluation.result().has_value());
  error_ = absl::UnavailableError("ps gone");
  EndRecord end;
  end.completed = true;
  EXPECT_THAT(evaluation.AtEnd(end), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(evaluation.result().has_value());
}

TEST_F(EvaluationTest, FailureDuringTrainingIsSaidAndPassedOver) {
  error_ = absl::UnavailableError("ps gone");
  Evaluation evaluation = Make(1);
  ASSERT_THAT(evaluation.AfterStep(At(1)), IsOk());
  EXPECT_THAT(lines_.lines(), ElementsAre(HasSubstr("ps gone")));
}

}  // namespace
}  // namespace muster
