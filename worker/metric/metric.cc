#include "worker/metric/metric.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/config/describe_types.h"

namespace muster {

std::string DescribeMetrics() { return DescribeTypes<MetricRegistry>(); }

absl::Status WantClasses(const MetricModel& model) {
  if (model.loss.prediction == Prediction::kSoftmax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "wanted a model with one class a row, found a loss that compares each "
      "output with a target");
}

absl::Status WantProbabilities(const MetricModel& model) {
  if (model.loss.prediction != Prediction::kIdentity) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "wanted a model of classes or of probabilities, found a loss that "
      "compares numbers");
}

absl::Status WantTargets(const MetricModel& model) {
  if (model.loss.prediction == Prediction::kIdentity) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "wanted a model whose outputs are the targets themselves, found a loss "
      "that makes probabilities of them");
}

std::vector<std::string> OutputNames(const MetricModel& model) {
  std::vector<std::string> names = model.class_names;
  if (model.num_outputs == 1) return {names.size() == 2 ? names[1] : "1"};
  if (static_cast<int64_t>(names.size()) > model.num_outputs) names.clear();
  while (static_cast<int64_t>(names.size()) < model.num_outputs) {
    names.push_back(absl::StrCat(names.size()));
  }
  return names;
}

}  // namespace muster
