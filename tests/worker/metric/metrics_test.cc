// Every metric of metrics.bzl by what it finds in a few rows.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/metric/metric_set.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

MetricModel Classes(int64_t count) {
  return {count, {false, Prediction::kSoftmax, {"accuracy"}}};
}
MetricModel Probabilities(int64_t count) {
  return {count, {true, Prediction::kSigmoid, {"accuracy"}}};
}
MetricModel Numbers(int64_t count) {
  return {count, {true, Prediction::kIdentity, {"mean_absolute_error"}}};
}

absl::StatusOr<MetricSet> Make(const std::string& text,
                               const MetricModel& model) {
  EvaluationSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return MetricSet::Create(spec, model);
}

// Rows of classes, in batches of two.
MetricResult Find(MetricSet metrics, const std::vector<float>& outputs,
                  const std::vector<int32_t>& labels) {
  const size_t count = outputs.size() / labels.size();
  for (size_t i = 0; i < labels.size(); i += 2) {
    MetricRows rows;
    rows.outputs = absl::MakeConstSpan(outputs).subspan(i * count, 2 * count);
    rows.labels = absl::MakeConstSpan(labels).subspan(i, 2);
    rows.num_outputs = static_cast<int64_t>(count);
    metrics.Add(rows);
  }
  return metrics.Finish();
}

MetricResult FindTargets(MetricSet metrics, const std::vector<float>& outputs,
                         const std::vector<float>& targets,
                         int64_t num_outputs) {
  MetricRows rows;
  rows.outputs = outputs;
  rows.targets = targets;
  rows.num_outputs = num_outputs;
  metrics.Add(rows);
  return metrics.Finish();
}

TEST(MetricsTest, EachIsRegisteredAndFitsAModel) {
  ASSERT_THAT(MetricRegistry::Validate(), IsOk());
  const std::vector<std::string> names = absl::StrSplit(METRIC_LIST, ',');
  EXPECT_EQ(MetricRegistry::Names(), names);
  for (const std::string& name : names) {
    const std::string text = "metric { type: '" + name + "' }";
    EXPECT_TRUE(Make(text, Classes(10)).ok() || Make(text, Numbers(1)).ok())
        << name;
  }
}

TEST(MetricsTest, AccuracyIsTheDefaultOfClassesAndTakesTheFirstOfEquals) {
  auto metrics = Make("", Classes(3));
  ASSERT_THAT(metrics, IsOk());
  const MetricResult result = Find(
      *std::move(metrics), {1, 2, 0, 5, 5, 0, 5, 5, 0, 0, 0, 1}, {1, 0, 0, 1});
  EXPECT_EQ(result.Find("accuracy"), 0.75);
  EXPECT_EQ(result.values.size(), 1);
}

TEST(MetricsTest, AccuracyOfProbabilitiesWantsEveryOutputOnItsSide) {
  auto metrics = Make("", Probabilities(2));
  ASSERT_THAT(metrics, IsOk());
  // Targets may be between 0 and 1; an output of 0 is on the side of 0.
  const MetricResult result = FindTargets(
      *std::move(metrics), {1, -1, 1, 1, -1, -2, 1, 1, -1, 0, 0, 0, 1, 1},
      {1, 0, 1, 0, 0, 0, 1, 0.4f, 0.5f, 0, 1, 0, 0.4f, 1}, 2);
  EXPECT_DOUBLE_EQ(*result.Find("accuracy"), 3.0 / 7);
}

TEST(MetricsTest, TopKCountsLargerOutputsAndEqualOnesBeforeIt) {
  auto metrics =
      Make("metric { type: 'top_k' attr { name: 'k' i: 2 } }", Classes(3));
  ASSERT_THAT(metrics, IsOk());
  const MetricResult result =
      Find(*std::move(metrics), {3, 2, 1, 3, 2, 1, 1, 1, 1}, {1, 2, 2});
  EXPECT_DOUBLE_EQ(*result.Find("top_2_accuracy"), 1.0 / 3);
}

TEST(MetricsTest, ErrorsAreMeansOverRowsAndOutputs) {
  auto metrics = Make(
      "metric { type: 'mean_absolute_error' } "
      "metric { type: 'root_mean_squared_error' }",
      Numbers(2));
  ASSERT_THAT(metrics, IsOk());
  const MetricResult result =
      FindTargets(*std::move(metrics), {1, 2, 3, 4}, {1, 4, 2, 8}, 2);
  EXPECT_DOUBLE_EQ(*result.Find("mean_absolute_error"), 7.0 / 4);
  EXPECT_DOUBLE_EQ(*result.Find("root_mean_squared_error"),
                   std::sqrt(21.0 / 4));
}

TEST(MetricsTest, AConfusionMatrixHasTrueClassesAsRows) {
  auto metrics = Make("metric { type: 'confusion_matrix' }", Classes(2));
  ASSERT_THAT(metrics, IsOk());
  const MetricResult result =
      Find(*std::move(metrics), {1, 0, 0, 1, 0, 1, 0, 1}, {0, 0, 0, 1});
  ASSERT_EQ(result.tables.size(), 1);
  EXPECT_EQ(result.tables[0].name, "confusion_matrix");
  EXPECT_THAT(result.tables[0].counts,
              ElementsAre(ElementsAre(1, 2), ElementsAre(0, 1)));
}

// In any place of the row, label's or not, and infinities likewise.
TEST(MetricsTest, ARowWithAnOutputThatIsNotFiniteIsNeverRight) {
  for (const float bad :
       {std::nanf(""), -std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    auto metrics = Make(
        "metric { type: 'accuracy' } metric { type: 'confusion_matrix' } "
        "metric { type: 'top_k' attr { name: 'k' i: 2 } }",
        Classes(3));
    ASSERT_THAT(metrics, IsOk());
    const MetricResult result = Find(
        *std::move(metrics),
        {bad, bad, bad, bad, 1, 2, 3, bad, 1, 2, 1, bad, bad, 0, 0, 3, 2, 1},
        {0, 2, 0, 0, 0, 0});
    EXPECT_DOUBLE_EQ(*result.Find("accuracy"), 1.0 / 6) << bad;
    EXPECT_DOUBLE_EQ(*result.Find("top_2_accuracy"), 1.0 / 6) << bad;
    EXPECT_THAT(result.tables[0].counts,
                ElementsAre(ElementsAre(1, 0, 0), ElementsAre(0, 0, 0),
                            ElementsAre(0, 0, 0)))
        << bad;

    auto sides = Make("", Probabilities(2));
    ASSERT_THAT(sides, IsOk());
    EXPECT_DOUBLE_EQ(*FindTargets(*std::move(sides), {bad, 1, 1, bad, -1, -1},
                                  {1, 1, 1, 0, 0, 0}, 2)
                          .Find("accuracy"),
                     1.0 / 3)
        << bad;
  }
}

TEST(MetricsTest, OneThatDoesNotFitTheModelIsRefusedByName) {
  const auto refused = [](const std::string& text, const MetricModel& model,
                          const std::string& why) {
    EXPECT_THAT(
        Make(text, model),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("evaluation.metric"), HasSubstr(why))));
  };
  refused("metric { type: 'accuracy' }", Numbers(1), "mean_absolute_error");
  refused("metric { type: 'top_k' }", Classes(5), "less than the 5 outputs");
  refused("metric { type: 'top_k' }", Numbers(9), "one class a row");
  refused("metric { type: 'mean_absolute_error' }", Classes(3), "targets");
  refused("metric { type: 'confusion_matrix' }", Classes(1001), "1000");
  refused("metric { type: 'acuracy' }", Classes(3), "did you mean");
  refused("metric { type: 'accuracy' } metric { type: 'accuracy' }", Classes(3),
          "twice");
}

}  // namespace
}  // namespace muster
