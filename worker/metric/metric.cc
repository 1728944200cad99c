#include "worker/metric/metric.h"

#include "absl/status/status.h"
#include "common/config/describe_types.h"

namespace muster {

std::string DescribeMetrics() { return DescribeTypes<MetricRegistry>(); }

absl::Status WantClasses(const MetricModel& model) {
  if (model.loss.prediction == Prediction::kSoftmax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "wanted a model with one class a row, found a loss that compares each "
      "output with a target");
}

absl::Status WantTargets(const MetricModel& model) {
  if (model.loss.prediction == Prediction::kIdentity) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "wanted a model whose outputs are the targets themselves, found a loss "
      "that makes probabilities of them");
}

}  // namespace muster
