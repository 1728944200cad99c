#include "worker/task/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/stopped_error.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/ticking_clock.h"
#include "tests/worker/input/counting_data_set.h"
#include "tests/worker/session/round_coordination.h"
#include "tests/worker/step/tiny_model.h"
#include "worker/input/fill_batch.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kClasses = 10;
// Ten examples are two batches and a half.
constexpr int64_t kRows = 4;
// Rounding of a mean of ten float32.
constexpr double kRounding = 1e-6;

bool GoOn() { return true; }

class EvaluatorTest : public ::testing::Test {
 protected:
  // Every example gets the label 3: right for one of the ten.
  void SetUp() override {
    std::vector<float> bias(kClasses, 0.0f);
    bias[3] = 1;
    ASSERT_THAT(tiny_.Load(bias), IsOk());
  }

  TinyModel tiny_{kClasses, kRows, CompileOptions::Mode::kEvaluate};
};

TEST_F(EvaluatorTest, CountsEveryExampleOnceWithThePulledParameters) {
  const CountingDataSet data_set(kClasses);
  Evaluator evaluator({}, &data_set, tiny_.model(), tiny_.client());
  const auto result = evaluator.Evaluate(GoOn);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->examples, kClasses);
  EXPECT_EQ(result->metrics.Find("accuracy"), 0.1);
  EXPECT_NEAR(result->loss, std::log(9 + std::exp(1.0)) - 0.1, kRounding);
}

TEST_F(EvaluatorTest, LongEvaluation_ShowsItsRows) {
  const CountingDataSet data_set(kClasses);
  const TickingClock clock(absl::Seconds(10));
  ReportedLines lines;
  Evaluator evaluator({}, &data_set, tiny_.model(), tiny_.client(),
                      /*rounds=*/nullptr, /*bad_records=*/nullptr,
                      {lines.reporter(), nullptr, &clock});
  ASSERT_THAT(evaluator.Evaluate(GoOn), IsOk());
  EXPECT_THAT(
      lines.lines(),
      ElementsAre("I evaluation: 4 of 10 rows, 0.4 rows/s, 15s left",
                  "I evaluation: 8 of 10 rows, 0.4 rows/s, 5s left",
                  "I evaluation: 10 of 10 rows, 0.333 rows/s, 0s left"));
}

TEST_F(EvaluatorTest, PullsWhatIsThereBetweenTwoRounds) {
  const CountingDataSet data_set(kClasses);
  const MonotonicClock clock{};
  RoundCoordination coordination(/*round=*/8);
  RoundPauser rounds(&clock, &coordination, Sender());
  Evaluator evaluator({}, &data_set, tiny_.model(), tiny_.client(), &rounds);
  ASSERT_THAT(evaluator.Evaluate(GoOn), IsOk());
  EXPECT_EQ(tiny_.shard().round(), 8);
  EXPECT_FALSE(coordination.held);
}

TEST_F(EvaluatorTest, PullsAnewWhatARoundHasMixed) {
  const CountingDataSet data_set(kClasses);
  const MonotonicClock clock{};
  RoundCoordination coordination(/*round=*/8);
  // Closed after the pull began: the first hold was lost.
  coordination.after_hold = [&coordination] { coordination.set_round(9); };
  RoundPauser rounds(&clock, &coordination, Sender());
  Evaluator evaluator({}, &data_set, tiny_.model(), tiny_.client(), &rounds);
  ASSERT_THAT(evaluator.Evaluate(GoOn), IsOk());
  EXPECT_EQ(tiny_.shard().round(), 9);
  EXPECT_FALSE(coordination.held);
}

class ValidationRows : public CountingDataSet {
 public:
  using CountingDataSet::CountingDataSet;
  Split half() const override { return Split::kValidation; }
};

TEST_F(EvaluatorTest, FiguresAreOfTheHalfWhoseRowsTheyAre) {
  const ValidationRows data_set(kClasses);
  Evaluator evaluator({}, &data_set, tiny_.model(), tiny_.client());
  const auto result = evaluator.Evaluate(GoOn);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("validation_accuracy"), 0.1);
  const ValidationRows none(0);
  Evaluator of_none({}, &none, tiny_.model(), tiny_.client());
  EXPECT_THAT(of_none.Evaluate(GoOn),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the validation half is empty")));
}

// Whose rows from one on are bad.
class TornDataSet : public CountingDataSet {
 public:
  explicit TornDataSet(int64_t first_bad)
      : CountingDataSet(kClasses), first_bad_(first_bad) {}

  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    if (index < first_bad_) return CountingDataSet::Read(index, into);
    return absl::DataLossError(absl::StrCat("row ", index, " of 'FILE'"));
  }

 private:
  const int64_t first_bad_;
};

TEST_F(EvaluatorTest, LeavesBadRecordsOutAndCountsThem) {
  const TornDataSet data_set(kClasses - 2);
  ReportedLines lines;
  BadRecords bad_records(lines.reporter());
  Evaluator evaluator({}, &data_set, tiny_.model(), tiny_.client(),
                      /*rounds=*/nullptr, &bad_records);
  const auto result = evaluator.Evaluate(GoOn);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->examples, kClasses - 2);
  EXPECT_EQ(result->metrics.Find("accuracy"), 1.0 / (kClasses - 2));
  EXPECT_EQ(bad_records.count(), 2);
  EXPECT_EQ(lines.lines().back(),
            "W evaluation: 2 of 10 rows are bad, and are left out");
  Evaluator failing({}, &data_set, tiny_.model(), tiny_.client());
  EXPECT_THAT(failing.Evaluate(GoOn), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(EvaluatorTest, ATestSetOfBadRecordsIsAnError) {
  const TornDataSet data_set(0);
  BadRecords bad_records{Reporter()};
  Evaluator evaluator({}, &data_set, tiny_.model(), tiny_.client(),
                      /*rounds=*/nullptr, &bad_records);
  EXPECT_THAT(evaluator.Evaluate(GoOn),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("all rows")));
}

TEST_F(EvaluatorTest, AnEmptyTestSetIsAnError) {
  const CountingDataSet data_set(0);
  Evaluator evaluator({}, &data_set, tiny_.model(), tiny_.client());
  EXPECT_THAT(evaluator.Evaluate(GoOn),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(EvaluatorTest, AStopEndsItBetweenBatches) {
  const CountingDataSet data_set(kClasses);
  Batch batch = MakeBatch(data_set, kRows);
  int batches = 0;
  EXPECT_THAT(EvaluateModel({}, data_set, tiny_.model(), batch,
                            [&] { return ++batches < 3; }),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(batches, 3);
}

TEST_F(EvaluatorTest, AStopOfTheChiefEndsItsEvaluation) {
  const CountingDataSet data_set(kClasses);
  Evaluator evaluator({}, &data_set, tiny_.model(), tiny_.client());
  EXPECT_TRUE(IsStopped(evaluator.Evaluate([] { return false; }).status()));
}

TEST(CheckNoEvaluationTest, NamesTheFieldThatWantsATestHalf) {
  TrainingSpec training;
  training.mutable_input()->set_dir("/data/d");
  EXPECT_THAT(CheckNoEvaluation(training), IsOk());
  EXPECT_THAT(DescribeNoEvaluation(training),
              AllOf(HasSubstr("'/data/d' has no files of a test half"),
                    HasSubstr("nothing is evaluated")));
  training.mutable_evaluation()->set_every_steps(5);
  EXPECT_THAT(CheckNoEvaluation(training),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("evaluation.every_steps is 5"),
                             HasSubstr("--set=input.test_fraction=0.1"))));
  training.mutable_stop()->set_target_accuracy(0.5);
  EXPECT_THAT(CheckNoEvaluation(training),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stop.target_accuracy is 0.5")));
  training.mutable_stop()->clear_target_accuracy();
  ScheduleSpec& schedule = *training.mutable_optimizer()->mutable_schedule();
  schedule.set_name("on_plateau");
  schedule.set_metric("test_loss");
  EXPECT_THAT(CheckNoEvaluation(training),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("optimizer.schedule.metric is test_loss")));
  training.mutable_stop()->mutable_plateau()->set_metric("test_accuracy");
  EXPECT_THAT(CheckNoEvaluation(training),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stop.plateau.metric is test_accuracy")));
  training.mutable_input()->set_validation_fraction(0.1);
  EXPECT_THAT(CheckNoEvaluation(training), IsOk());
  EXPECT_THAT(DescribeNoEvaluation(training),
              HasSubstr("no files of a test half: the validation half alone"));
}

}  // namespace
}  // namespace muster
