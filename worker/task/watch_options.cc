#include "worker/task/watch_options.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/metric/metric_set.h"

namespace muster {
namespace {

// The figures that the test half alone has a say in: "stop.plateau.metric is
// test_loss".
std::vector<std::string> FindTestFigures(
    const EvaluationWatch::Options& options) {
  std::vector<std::string> found;
  const auto add = [&found](absl::string_view field, const FigureRule& rule) {
    if (absl::StartsWith(rule.metric, "test_")) {
      found.push_back(absl::StrCat(field, ".metric is ", rule.metric));
    }
  };
  add("stop.plateau", options.stop);
  add("optimizer.schedule", options.schedule);
  add("checkpoint.keep_best", options.kept);
  return found;
}

}  // namespace

absl::StatusOr<EvaluationWatch::Options> WatchOptions(
    const TrainingSpec& training, const CompiledModel& model,
    absl::string_view half, const Reporter& reporter) {
  ASSIGN_OR_RETURN(const MetricSet metrics,
                   MetricSet::Create(training.evaluation(),
                                     {model.num_outputs(), model.loss()}));
  std::vector<FigureDef> figures = metrics.Figures();
  figures.insert(figures.begin(),
                 FigureDef{"loss", /*smaller_is_better=*/true});
  for (FigureDef& figure : figures) {
    figure.name = absl::StrCat(half, "_", figure.name);
  }
  ASSIGN_OR_RETURN(EvaluationWatch::Options options,
                   EvaluationWatch::OptionsOf(training, figures));
  const std::vector<std::string> chosen_by_test = FindTestFigures(options);
  if (!chosen_by_test.empty()) {
    reporter.Info(absl::StrCat(
        absl::StrJoin(chosen_by_test, ", "),
        ": the test half has a part in choosing the model, whose figures on it "
        "will look better than on rows that nobody has seen"));
  }
  return options;
}

}  // namespace muster
