#include "worker/task/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/worker/input/counting_data_set.h"
#include "tests/worker/session/round_coordination.h"
#include "tests/worker/step/tiny_model.h"
#include "worker/input/fill_batch.h"

namespace muster {
namespace {

constexpr int64_t kClasses = 10;
// Ten examples are two batches and a half.
constexpr int64_t kRows = 4;
// Rounding of a mean of ten float32.
constexpr double kRounding = 1e-6;

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
  const auto result = evaluator.Evaluate();
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->examples, kClasses);
  EXPECT_EQ(result->metrics.Find("accuracy"), 0.1);
  EXPECT_NEAR(result->loss, std::log(9 + std::exp(1.0)) - 0.1, kRounding);
}

TEST_F(EvaluatorTest, PullsWhatIsThereBetweenTwoRounds) {
  const CountingDataSet data_set(kClasses);
  const MonotonicClock clock{};
  RoundCoordination coordination(/*round=*/8);
  RoundPauser rounds(&clock, &coordination, Sender());
  Evaluator evaluator({}, &data_set, tiny_.model(), tiny_.client(), &rounds);
  ASSERT_THAT(evaluator.Evaluate(), IsOk());
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
  ASSERT_THAT(evaluator.Evaluate(), IsOk());
  EXPECT_EQ(tiny_.shard().round(), 9);
  EXPECT_FALSE(coordination.held);
}

TEST_F(EvaluatorTest, AnEmptyTestSetIsAnError) {
  const CountingDataSet data_set(0);
  Evaluator evaluator({}, &data_set, tiny_.model(), tiny_.client());
  EXPECT_THAT(evaluator.Evaluate(),
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

}  // namespace
}  // namespace muster
