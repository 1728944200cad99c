// An evaluation with every metric has the same names in result.json, the log
// and TensorBoard.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/config/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/summary/read_events.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "worker/hook/summary_hooks.h"
#include "worker/metric/metric_set.h"
#include "worker/task/result_file.h"

namespace muster {
namespace {

using ::testing::IsSupersetOf;

using Names = std::set<std::string>;

// By every metric that fits the model.
EvaluationResult Evaluate(const MetricModel& model, const MetricRows& rows) {
  EvaluationSpec spec;
  for (const std::string& type : MetricRegistry::Names()) {
    EvaluationSpec one;
    one.add_metric()->set_type(type);
    if (type == "top_k") {
      Attr* const k = one.mutable_metric(0)->add_attr();
      k->set_name("k");
      k->set_i(1);
    }
    if (MetricSet::Create(one, model).ok()) *spec.add_metric() = one.metric(0);
  }
  auto metrics = MetricSet::Create(spec, model);
  EXPECT_THAT(metrics, IsOk());
  metrics->Add(rows);
  EvaluationResult result;
  result.metrics = metrics->Finish();
  result.examples = rows.rows();
  result.non_finite = 1;
  return result;
}

// But the count of rows, which stands beside the figures there.
Names InResultFile(const EvaluationResult& result) {
  const auto json = ParseJson(EvaluationJson(result));
  EXPECT_THAT(json, IsOk());
  Names names;
  for (const auto& [name, value] : json->members) names.insert(name);
  EXPECT_EQ(names.erase(result.half + "_examples"), 1u);
  return names;
}

// But tables of counts, which have no words.
Names InLog(const EvaluationResult& result) {
  Names names;
  for (const absl::string_view word :
       absl::StrSplit(DescribeEvaluation(result), ' ')) {
    names.insert(std::string(word.substr(0, word.find('='))));
  }
  ReportedLines lines;
  ReportClasses(result, lines.reporter());
  const std::vector<std::string> reported = lines.lines();
  if (!reported.empty()) {
    absl::string_view title = reported[0];
    EXPECT_TRUE(absl::ConsumePrefix(&title, "I "));
    EXPECT_TRUE(absl::ConsumeSuffix(&title, ":"));
    names.insert(std::string(title));
  }
  for (const MetricResult::Table& table : result.metrics.tables) {
    names.insert(result.NameOf(table.name));
  }
  return names;
}

Names InTensorBoard(const EvaluationResult& result) {
  FakeFileSystem files("logs");
  {
    EventFileWriter::Options options;
    options.file.file_system = &files;
    options.file.folder = "logs/chief";
    EventFileWriter writer(options);
    MakeEvaluationSummaries(&writer, {})(1, result);
  }
  const std::vector<std::string> names = files.List("logs/chief").value();
  Names tags;
  for (const Event& event :
       ReadEvents(files.Contents("logs/chief/" + names[0]))) {
    for (const Summary::Value& value : event.summary().value()) {
      tags.insert(value.tag());
    }
  }
  return tags;
}

void ExpectSameNames(EvaluationResult result, const Names& some) {
  for (const char* const half : {"test", "validation"}) {
    result.half = half;
    const Names names = InResultFile(result);
    Names wanted;
    for (const std::string& name : some) wanted.insert(result.NameOf(name));
    EXPECT_THAT(names, IsSupersetOf(wanted));
    EXPECT_EQ(InLog(result), names);
    EXPECT_EQ(InTensorBoard(result), names);
  }
}

TEST(FigureNamesTest, OfClassesAreTheSameInTheFileTheLogAndTensorBoard) {
  const std::vector<float> outputs = {1, 0, 0, 1, 1, 0};
  const std::vector<int32_t> labels = {0, 1, 1};
  MetricRows rows;
  rows.outputs = outputs;
  rows.labels = labels;
  rows.num_outputs = 2;
  ExpectSameNames(
      Evaluate({2, {false, Prediction::kSoftmax, {}}}, rows),
      {"accuracy", "auc", "by_class", "confusion_matrix", "f1", "log_loss",
       "loss", "non_finite_rows", "precision", "recall", "top_1_accuracy"});
}

TEST(FigureNamesTest, OfTargetsAreTheSameInTheFileTheLogAndTensorBoard) {
  const std::vector<float> outputs = {1, 0};
  const std::vector<float> targets = {1, 0};
  MetricRows rows;
  rows.outputs = outputs;
  rows.targets = targets;
  ExpectSameNames(Evaluate({1, {true, Prediction::kSigmoid, {}}}, rows),
                  {"accuracy", "auc", "by_class", "log_loss", "precision"});
  ExpectSameNames(
      Evaluate({1, {true, Prediction::kIdentity, {}}}, rows),
      {"loss", "mean_absolute_error", "r2", "root_mean_squared_error"});
}

}  // namespace
}  // namespace muster
