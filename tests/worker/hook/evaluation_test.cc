#include "worker/hook/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class EvaluationTest : public ::testing::Test {
 protected:
  Evaluation Make(int64_t every_steps) {
    return Evaluation(
        every_steps,
        [this]() -> absl::StatusOr<EvaluationResult> {
          ++runs_;
          if (!error_.ok()) return error_;
          EvaluationResult result{100, 0.3, {{{"accuracy", 0.9}}, {}}};
          result.non_finite = non_finite_;
          result.metrics.by_class = metrics_.by_class;
          result.metrics.remarks = metrics_.remarks;
          return result;
        },
        lines_.reporter(),
        [this](absl::string_view reason, const absl::Status& failure) {
          stops_.push_back(absl::StrCat(reason, ": ", failure.message()));
        });
  }
  static StepRecord At(int64_t global_step) {
    StepRecord step;
    step.global_step = global_step;
    return step;
  }

  int runs_ = 0;
  int64_t non_finite_ = 0;
  MetricResult metrics_;
  std::vector<std::string> stops_;
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

// The step is reported with one question, and counted by the answer to another.
TEST_F(EvaluationTest, AMultipleReachedInAWait_IsEvaluatedThere) {
  Evaluation evaluation = Make(10);
  ASSERT_THAT(evaluation.AfterStep(At(9)), IsOk());
  ASSERT_THAT(evaluation.AfterWait(10), IsOk());
  EXPECT_EQ(runs_, 1);
  ASSERT_THAT(evaluation.AfterStep(At(11)), IsOk());
  EXPECT_EQ(runs_, 1);
}

TEST_F(EvaluationTest, OneThatWasDueAndIsNotCounted_IsMadeUpForAfterARestore) {
  Evaluation evaluation = Make(10);
  int64_t counted = 10;
  evaluation.SetCounted([&counted] { return counted; });
  EpochRecord epoch;
  epoch.global_step = 20;
  ASSERT_THAT(evaluation.AfterEnter(epoch), IsOk());
  ASSERT_THAT(evaluation.AfterWait(20), IsOk());
  EXPECT_EQ(runs_, 1);
  counted = 20;
  ASSERT_THAT(evaluation.AfterEnter(epoch), IsOk());
  ASSERT_THAT(evaluation.AfterWait(20), IsOk());
  EXPECT_EQ(runs_, 1);
}

TEST_F(EvaluationTest, OneThatIsNotCountedBecauseAPsWasAway_IsTriedAgain) {
  Evaluation evaluation = Make(10);
  evaluation.SetCounted([] { return 0; });
  error_ = absl::UnavailableError("gone");
  ASSERT_THAT(evaluation.AfterStep(At(10)), IsOk());
  error_ = absl::OkStatus();
  ASSERT_THAT(evaluation.AfterStep(At(11)), IsOk());
  EXPECT_EQ(runs_, 2);
}

TEST_F(EvaluationTest, OneThatCannotSucceed_IsNotTriedAtEachStep) {
  Evaluation evaluation = Make(10);
  evaluation.SetCounted([] { return 0; });
  error_ = absl::InvalidArgumentError("all rows are bad");
  ASSERT_THAT(evaluation.AfterStep(At(10)), IsOk());
  ASSERT_THAT(evaluation.AfterStep(At(11)), IsOk());
  EXPECT_EQ(runs_, 1);
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
  ASSERT_THAT(evaluation.results(), SizeIs(1));
  EXPECT_EQ(evaluation.results()[0].metrics.Find("accuracy"), 0.9);
}

TEST_F(EvaluationTest, RemarksFollowEachLineAndTheTableOfClassesTheLast) {
  metrics_.by_class = {{"cat", 3, 1, 0.5, 0.75}};
  metrics_.remarks = {"auc: of one class"};
  Evaluation evaluation = Make(10);
  ASSERT_THAT(evaluation.AfterStep(At(10)), IsOk());
  EndRecord end;
  end.completed = true;
  end.global_step = 15;
  ASSERT_THAT(evaluation.AtEnd(end), IsOk());
  EXPECT_THAT(lines_.lines(),
              ElementsAre(HasSubstr("step=10 "), "I test_auc: of one class",
                          HasSubstr("step=15 "), "I test_auc: of one class",
                          "I test_by_class:", HasSubstr("precision"),
                          HasSubstr("---"), HasSubstr("cat")));
}

TEST_F(EvaluationTest, SkipsTheEndAfterASignal) {
  Evaluation evaluation = Make(0);
  ASSERT_THAT(evaluation.AtEnd(EndRecord()), IsOk());
  EXPECT_EQ(runs_, 0);
}

TEST_F(EvaluationTest, FailureAtTheEndLeavesNoOlderResult) {
  Evaluation evaluation = Make(1);
  ASSERT_THAT(evaluation.AfterStep(At(1)), IsOk());
  ASSERT_THAT(evaluation.results(), SizeIs(1));
  error_ = absl::UnavailableError("ps gone");
  EndRecord end;
  end.completed = true;
  EXPECT_THAT(evaluation.AtEnd(end), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(evaluation.results(), IsEmpty());
}

// The figures of a validation half, while training and at the end.
EvaluationResult Validated() {
  EvaluationResult result{50, 0.5, {{{"accuracy", 0.75}}, {}}};
  result.half = "validation";
  return result;
}

TEST_F(EvaluationTest, BesideAValidationHalf_TheTestHalfIsLeftForTheEnd) {
  Evaluation evaluation(
      1, [] { return Validated(); }, lines_.reporter());
  evaluation.set_evaluate_at_end([] {
    return EvaluationResult{100, 0.25, {{{"accuracy", 1}}, {}}};
  });
  std::vector<std::string> listened;
  evaluation.AddListener([&](int64_t, const EvaluationResult& result) {
    listened.push_back(result.half);
  });
  ASSERT_THAT(evaluation.AfterStep(At(1)), IsOk());
  EXPECT_THAT(listened, ElementsAre("validation"));
  EndRecord end;
  end.completed = true;
  end.global_step = 2;
  ASSERT_THAT(evaluation.AtEnd(end), IsOk());
  EXPECT_THAT(listened, ElementsAre("validation", "validation", "test"));
  ASSERT_THAT(evaluation.results(), SizeIs(2));
  EXPECT_EQ(evaluation.results()[0].Find("validation_loss"), 0.5);
  EXPECT_EQ(evaluation.results()[1].Find("test_accuracy"), 1);
  EXPECT_EQ(evaluation.results()[1].Find("validation_loss"), std::nullopt);
  EXPECT_THAT(
      lines_.lines(),
      ElementsAre("I step=1 validation_accuracy=0.7500 validation_loss=0.5000",
                  "I step=2 validation_accuracy=0.7500 validation_loss=0.5000",
                  "I step=2 test_accuracy=1.0000 test_loss=0.2500"));
}

TEST_F(EvaluationTest, OneHalfThatFailsAtTheEnd_LeavesNoResultOfEither) {
  Evaluation evaluation(
      0, [] { return Validated(); }, lines_.reporter());
  evaluation.set_evaluate_at_end([]() -> absl::StatusOr<EvaluationResult> {
    return absl::UnavailableError("ps gone");
  });
  EndRecord end;
  end.completed = true;
  EXPECT_THAT(evaluation.AtEnd(end), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(evaluation.results(), IsEmpty());
}

TEST(DescribeEvaluationTest, WritesNanWithoutASign) {
  const double nan = -std::nan("");
  EXPECT_EQ(DescribeEvaluation({2, nan, {{{"mean_absolute_error", nan}}, {}}}),
            "test_mean_absolute_error=nan test_loss=nan");
}

TEST(DescribeEvaluationTest, FiguresHaveTheNameOfTheHalf) {
  EvaluationResult result = Validated();
  result.non_finite = 3;
  EXPECT_EQ(DescribeEvaluation(result),
            "validation_accuracy=0.7500 validation_loss=0.5000 "
            "validation_non_finite_rows=3");
}

TEST_F(EvaluationTest, RowsThatAreNotFiniteAreCountedAndSaid) {
  non_finite_ = 99;
  Evaluation evaluation = Make(1);
  ASSERT_THAT(evaluation.AfterStep(At(1)), IsOk());
  EXPECT_THAT(lines_.lines(),
              ElementsAre("I step=1 test_accuracy=0.9000 test_loss=0.3000 "
                          "test_non_finite_rows=99"));
  EXPECT_THAT(stops_, IsEmpty());
}

TEST_F(EvaluationTest, NoRowThatIsFiniteEndsTheJobAsANanStepDoes) {
  non_finite_ = 100;
  Evaluation evaluation = Make(1);
  ASSERT_THAT(evaluation.AfterStep(At(1)), IsOk());
  EndRecord end;
  end.completed = true;
  ASSERT_THAT(evaluation.AtEnd(end), IsOk());
  EXPECT_THAT(stops_, ElementsAre(HasSubstr("non_finite: the "
                                            "outputs of all 100 rows are NaN"),
                                  HasSubstr("non_finite: ")));
  EXPECT_THAT(evaluation.results(), SizeIs(1));
}

TEST_F(EvaluationTest, FailureDuringTrainingIsSaidAndPassedOver) {
  error_ = absl::UnavailableError("ps gone");
  Evaluation evaluation = Make(1);
  ASSERT_THAT(evaluation.AfterStep(At(1)), IsOk());
  EXPECT_THAT(lines_.lines(), ElementsAre(HasSubstr("ps gone")));
}

}  // namespace
}  // namespace muster
