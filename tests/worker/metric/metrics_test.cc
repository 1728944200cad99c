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

// scikit-learn: precision_recall_fscore_support([0, 0, 1, 2], [0, 1, 1, 0]).
TEST(MetricsTest, MeansOverClassesComeWithOneTableOfThem) {
  MetricModel model = Classes(4);
  model.class_names = {"cat", "dog", "rare", "absent"};
  auto metrics = Make(
      "metric { type: 'precision' } metric { type: 'recall' } "
      "metric { type: 'f1' }",
      model);
  ASSERT_THAT(metrics, IsOk());
  const MetricResult result =
      Find(*std::move(metrics),
           {1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0}, {0, 0, 1, 2});
  EXPECT_DOUBLE_EQ(*result.Find("precision"), 1.0 / 3);
  EXPECT_DOUBLE_EQ(*result.Find("recall"), 0.5);
  EXPECT_DOUBLE_EQ(*result.Find("f1"), (0.5 + 2.0 / 3) / 3);
  // Without the class that is in no label and in no prediction.
  ASSERT_EQ(result.by_class.size(), 3);
  EXPECT_EQ(result.by_class[1].name, "dog");
  EXPECT_EQ(result.by_class[1].rows, 1);
  EXPECT_DOUBLE_EQ(result.by_class[1].precision, 0.5);
  EXPECT_DOUBLE_EQ(result.by_class[1].recall, 1);
  EXPECT_DOUBLE_EQ(result.by_class[2].f1, 0);
}

TEST(MetricsTest, ClassesWithoutNamesAreNumbersAndOneOutputIsClassOne) {
  EXPECT_THAT(OutputNames(Classes(2)), ElementsAre("0", "1"));
  EXPECT_THAT(OutputNames(Probabilities(1)), ElementsAre("1"));
  MetricModel model = Probabilities(1);
  model.class_names = {"ham", "spam"};
  EXPECT_THAT(OutputNames(model), ElementsAre("spam"));
  model = Classes(3);
  model.class_names = {"a", "b"};
  EXPECT_THAT(OutputNames(model), ElementsAre("a", "b", "2"));
}

TEST(MetricsTest, AucOfOneClassIsNotANumberAndSaid) {
  for (const int64_t classes : {2, 3}) {
    auto metrics = Make("metric { type: 'auc' }", Classes(classes));
    ASSERT_THAT(metrics, IsOk());
    const MetricResult result =
        Find(*std::move(metrics), std::vector<float>(2 * classes, 1), {1, 1});
    EXPECT_TRUE(std::isnan(*result.Find("auc")));
    EXPECT_THAT(result.remarks, ElementsAre(HasSubstr("of one class")));
  }
}

// softmax(100, 0) and softmax(200, 0) are both 1 in float64.
TEST(MetricsTest, AucTellsRowsApartWhoseProbabilitiesAreRoundedToOne) {
  auto two = Make("metric { type: 'auc' }", Classes(2));
  ASSERT_THAT(two, IsOk());
  EXPECT_EQ(Find(*std::move(two), {0, 100, 0, 200}, {0, 1}).Find("auc"), 1);
  auto three = Make("metric { type: 'auc' }", Classes(3));
  ASSERT_THAT(three, IsOk());
  const MetricResult result =
      Find(*std::move(three), {0, 100, 0, 0, 200, 0}, {0, 1});
  EXPECT_EQ(result.Find("auc"), 1);
  EXPECT_THAT(result.remarks, ElementsAre(HasSubstr("over 2 of 3 classes")));
}

TEST(MetricsTest, LogLossOfFarOutputsIsFiniteAndSmallerIsBetter) {
  auto classes = Make("metric { type: 'log_loss' }", Classes(2));
  ASSERT_THAT(classes, IsOk());
  EXPECT_TRUE(classes->Figures()[0].smaller_is_better);
  EXPECT_EQ(
      Find(*std::move(classes), {0, 2000, 0, 2000}, {0, 1}).Find("log_loss"),
      1000);
  auto sides = Make("metric { type: 'log_loss' }", Probabilities(2));
  ASSERT_THAT(sides, IsOk());
  EXPECT_EQ(
      FindTargets(*std::move(sides), {-2000, 2000}, {1, 1}, 2).Find("log_loss"),
      1000);
}

TEST(MetricsTest, R2OfEqualTargetsIsNotANumberAndSaid) {
  auto one = Make("metric { type: 'r2' }", Numbers(1));
  ASSERT_THAT(one, IsOk());
  const MetricResult equal =
      FindTargets(*std::move(one), {1, 2}, {0.1f, 0.1f}, 1);
  EXPECT_TRUE(std::isnan(*equal.Find("r2")));
  EXPECT_THAT(equal.remarks, ElementsAre(HasSubstr("all equal")));
  auto two = Make("metric { type: 'r2' }", Numbers(2));
  ASSERT_THAT(two, IsOk());
  const MetricResult half =
      FindTargets(*std::move(two), {0, 5, 2, 5}, {0, 1, 2, 1}, 2);
  EXPECT_EQ(half.Find("r2"), 1);
  EXPECT_THAT(half.remarks, ElementsAre(HasSubstr("over 1 of 2 outputs")));
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
  refused("metric { type: 'auc' }", Numbers(1), "compares numbers");
  refused("metric { type: 'f1' }", Numbers(1), "compares numbers");
  refused("metric { type: 'log_loss' }", Numbers(1), "compares numbers");
  refused("metric { type: 'r2' }", Classes(3), "targets");
  refused("metric { type: 'acuracy' }", Classes(3), "did you mean");
  refused("metric { type: 'accuracy' } metric { type: 'accuracy' }", Classes(3),
          "twice");
}

}  // namespace
}  // namespace muster
