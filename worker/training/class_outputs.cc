#include "worker/training/class_outputs.h"

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/base/escape.h"
#include "worker/model/model_graph.h"
#include "worker/training/training_override.h"

namespace muster {
namespace {

constexpr size_t kShownNames = 5;
// The layers before the loss that are tried; each is a model of its own.
constexpr int kTriedLayers = 8;

// "cat, dog and 3 more"
std::string ShownNames(const std::vector<std::string>& names) {
  const auto shown = absl::MakeConstSpan(names).subspan(0, kShownNames);
  const size_t more = names.size() - shown.size();
  return absl::StrCat(EscapeForLog(absl::StrJoin(shown, ", ")),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

std::string Remedy(const TrainingSpec& training, int64_t num_classes) {
  const std::string flag = OutputsFlag(training, num_classes);
  return flag.empty() ? "give its last layer as many outputs"
                      : absl::StrCat(flag, " gives it as many");
}

absl::Status TooFewOutputs(const TrainingSpec& training,
                           const DataSet& data_set, int64_t num_outputs) {
  const std::string place = data_set.LargestLabelPlace();
  return absl::InvalidArgumentError(absl::StrCat(
      "the data set has ", data_set.num_classes(), " classes",
      place.empty() ? ""
                    : absl::StrCat(" (the label in ", place, " is ",
                                   data_set.num_classes() - 1, ")"),
      ", the last layer of model '", training.model().name(), "' has ",
      num_outputs, " outputs: ", Remedy(training, data_set.num_classes())));
}

}  // namespace

std::string OutputsFlag(const TrainingSpec& training, int64_t num_outputs) {
  const auto& layers = training.model().layer();
  const int begin = layers.size() - 1;
  for (int i = begin; i >= 0 && i > begin - kTriedLayers; --i) {
    const std::string& type = layers[i].type();
    if (type != "dense" && type != "conv2d") continue;
    const std::string assignment =
        absl::StrCat("model.", layers[i].name(),
                     type == "dense" ? ".units=" : ".filters=", num_outputs);
    TrainingSpec changed = training;
    if (!ApplyOverride(assignment, &changed).ok()) continue;
    const absl::StatusOr<ModelGraph> graph =
        ModelGraph::Create(changed.model());
    if (graph.ok() && graph->num_outputs() == num_outputs) {
      return absl::StrCat("--set=", assignment);
    }
  }
  return "";
}

absl::Status CheckOutputs(const TrainingSpec& training, const DataSet& data_set,
                          int64_t num_outputs, RunKind run) {
  if (data_set.num_classes() > num_outputs) {
    return TooFewOutputs(training, data_set, num_outputs);
  }
  const std::vector<std::string> names = data_set.ClassNames();
  const auto num_classes = static_cast<int64_t>(names.size());
  // One output may stand for the number of the class.
  if (run == RunKind::kKnown || names.empty() || num_outputs == 1 ||
      num_outputs <= num_classes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the data set has ", num_classes, " classes (", ShownNames(names),
      "), the last layer of model '", training.model().name(), "' has ",
      num_outputs, " outputs, some of which no row would ever train: ",
      Remedy(training, num_classes)));
}

}  // namespace muster
