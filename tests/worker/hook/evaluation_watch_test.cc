#include "worker/hook/evaluation_watch.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<FigureDef> kFigures = {{"validation_loss", true},
                                         {"validation_accuracy", false}};

TrainingSpec Parse(const std::string& text) {
  TrainingSpec training;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &training));
  return training;
}

EvaluationWatch MakeWatch(const std::string& text) {
  const auto options = EvaluationWatch::OptionsOf(Parse(text), kFigures);
  EXPECT_THAT(options, IsOk());
  return EvaluationWatch(*options);
}

EvaluationResult WithLoss(double loss) {
  EvaluationResult result;
  result.half = "validation";
  result.examples = 10;
  result.loss = loss;
  result.metrics.values = {{"accuracy", 1 - loss}};
  return result;
}

// The steps, of 10, 20, ..., whose evaluation did what `is` says.
std::vector<int64_t> StepsThat(EvaluationWatch& watch,
                               const std::vector<double>& losses,
                               bool EvaluationWatch::Outcome::*is) {
  std::vector<int64_t> steps;
  int64_t step = 0;
  for (const double loss : losses) {
    step += 10;
    if (watch.Add(step, WithLoss(loss)).*is) steps.push_back(step);
  }
  return steps;
}

TEST(EvaluationWatchTest, LossThatDoesNotFallForPatience_Stops) {
  EvaluationWatch watch =
      MakeWatch("stop { plateau { metric: 'validation_loss' patience: 3 } }");
  EXPECT_THAT(StepsThat(watch, {5, 4, 4, 4.5, 3, 3, 3, 3},
                        &EvaluationWatch::Outcome::stops),
              ElementsAre(80));
}

TEST(EvaluationWatchTest, ChangeOfMinChange_IsNotBetter) {
  EvaluationWatch watch = MakeWatch(
      "stop { plateau { metric: 'validation_loss' patience: 2 "
      "min_change: 0.5 } }");
  EXPECT_THAT(
      StepsThat(watch, {5, 4.5, 4.75, 4}, &EvaluationWatch::Outcome::stops),
      ElementsAre(30));
}

// torch.optim.lr_scheduler.ReduceLROnPlateau(patience=2), PyTorch 2.13: the
// third bad evaluation, and then the count begins anew.
TEST(EvaluationWatchTest, ScheduleOfPatienceTwo_LowersRateAtThirdBad) {
  EvaluationWatch watch = MakeWatch(
      "optimizer { schedule { name: 'on_plateau' metric: 'validation_loss' "
      "patience: 2 factor: 0.1 } }");
  EXPECT_THAT(StepsThat(watch, {1, 1, 1, 1, 1, 1, 1},
                        &EvaluationWatch::Outcome::lowers_rate),
              ElementsAre(40, 70));
  EXPECT_NEAR(watch.history().learning_rate_factor(), 0.01, 1e-12);
  EXPECT_NEAR(watch.history().learning_rate_factor_before(), 0.1, 1e-12);
  EXPECT_EQ(watch.history().factor_from(), 72);
}

TEST(EvaluationWatchTest, ModeOfMetric_DecidesWhichIsBest) {
  EvaluationWatch loss =
      MakeWatch("checkpoint { keep_best { metric: 'validation_loss' } }");
  EvaluationWatch accuracy =
      MakeWatch("checkpoint { keep_best { metric: 'validation_accuracy' } }");
  EvaluationWatch least = MakeWatch(
      "checkpoint { keep_best { metric: 'validation_accuracy' mode: MIN } }");
  const std::vector<double> losses = {3, 4, 2, 2, 5};
  const auto is_best = &EvaluationWatch::Outcome::is_best;
  EXPECT_THAT(StepsThat(loss, losses, is_best), ElementsAre(10, 30));
  EXPECT_THAT(StepsThat(accuracy, losses, is_best), ElementsAre(10, 30));
  EXPECT_THAT(StepsThat(least, losses, is_best), ElementsAre(10, 20, 50));
}

TEST(EvaluationWatchTest, NanValue_IsNeverBest) {
  EvaluationWatch watch =
      MakeWatch("checkpoint { keep_best { metric: 'validation_loss' } }");
  EXPECT_THAT(
      StepsThat(watch, {NAN, 4, NAN, 3}, &EvaluationWatch::Outcome::is_best),
      ElementsAre(20, 40));
}

// A NaN or an infinity in the history would be in the manifests.
TEST(EvaluationWatchTest, ValuesThatAreNotFinite_AreBadAndNotInTheHistory) {
  const std::string text =
      "stop { plateau { metric: 'validation_loss' patience: 2 } } "
      "checkpoint { keep_best { metric: 'validation_loss' } }";
  EvaluationWatch watch = MakeWatch(text);
  EXPECT_FALSE(watch.Add(10, WithLoss(-std::nan(""))).is_best);
  EXPECT_EQ(watch.history().stop().best_step(), 0);
  EXPECT_EQ(watch.history().stop().best(), 0);
  EXPECT_FALSE(watch.history().has_kept());
  EXPECT_TRUE(watch.Add(20, WithLoss(INFINITY)).stops);
  EXPECT_TRUE(watch.Add(30, WithLoss(7)).is_best);
  EXPECT_EQ(watch.history().stop().best(), 7);
  EXPECT_EQ(watch.history().kept().best_step(), 30);
}

TEST(EvaluationWatchTest, ModelWithoutAnAnswer_IsNotBest) {
  EvaluationWatch watch =
      MakeWatch("checkpoint { keep_best { metric: 'validation_accuracy' } }");
  EvaluationResult ruined = WithLoss(1);
  ruined.non_finite = ruined.examples;
  EXPECT_FALSE(watch.Add(10, ruined).is_best);
  EXPECT_FALSE(watch.history().has_kept());
}

TEST(EvaluationWatchTest, HistoryOfAnotherFigure_IsForgotten) {
  EvaluationWatch before = MakeWatch(
      "stop { plateau { metric: 'validation_loss' patience: 9 } } "
      "checkpoint { keep_best { metric: 'validation_loss' } }");
  before.Add(10, WithLoss(1));
  EvaluationWatch after = MakeWatch(
      "stop { plateau { metric: 'validation_accuracy' patience: 9 } } "
      "checkpoint { keep_best { metric: 'validation_loss' } }");
  after.Enter(before.history());
  EXPECT_FALSE(after.history().has_stop());
  EXPECT_EQ(after.history().kept().best_step(), 10);
}

TEST(EvaluationWatchTest, StepThatWasCounted_ChangesNothing) {
  EvaluationWatch watch =
      MakeWatch("stop { plateau { metric: 'validation_loss' patience: 2 } }");
  watch.Add(10, WithLoss(1));
  watch.Add(20, WithLoss(1));
  EXPECT_FALSE(watch.Add(20, WithLoss(1)).stops);
  EXPECT_EQ(watch.history().stop().bad_evaluations(), 1);
}

TEST(EvaluationWatchTest, FigureThatNoEvaluationMakes_IsRefusedByName) {
  EXPECT_THAT(
      EvaluationWatch::OptionsOf(
          Parse("stop { plateau { metric: 'test_f1' patience: 2 } }"),
          kFigures),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("stop.plateau.metric"), HasSubstr("'test_f1'"),
                     HasSubstr("validation_loss, validation_accuracy"))));
  EXPECT_THAT(
      EvaluationWatch::OptionsOf(
          Parse("checkpoint { keep_best { metric: 'validation_loss' } }"), {}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("make none")));
}

TEST(EvaluationWatchTest, PatienceZeroAndNegativeChange_AreRefusedByName) {
  EXPECT_THAT(
      EvaluationWatch::OptionsOf(
          Parse("stop { plateau { metric: 'validation_loss' } }"), kFigures),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("stop.plateau.patience")));
  EXPECT_THAT(
      EvaluationWatch::OptionsOf(
          Parse("stop { plateau { metric: 'validation_loss' patience: 1 "
                "min_change: -1 } }"),
          kFigures),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("stop.plateau.min_change")));
}

TEST(EvaluationWatchTest, AddKept_CountsForTheBestModelAlone) {
  EvaluationWatch watch = MakeWatch(
      "stop { plateau { metric: 'validation_loss' patience: 2 } } "
      "checkpoint { keep_best { metric: 'validation_loss' } }");
  EXPECT_TRUE(watch.Add(10, WithLoss(5)).is_best);
  EXPECT_FALSE(watch.AddKept(10, WithLoss(4))) << "its step is counted";
  EXPECT_FALSE(watch.AddKept(15, WithLoss(6)));
  EXPECT_TRUE(watch.AddKept(16, WithLoss(4)));
  EXPECT_EQ(watch.history().kept().best_step(), 16);
  EXPECT_EQ(watch.history().stop().best_step(), 10);
  EXPECT_EQ(watch.history().stop().bad_evaluations(), 0);
}

}  // namespace
}  // namespace muster
