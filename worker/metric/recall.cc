#include <memory>

#include "worker/metric/class_mean.h"
#include "worker/metric/metric.h"

namespace muster {
namespace {

absl::StatusOr<std::unique_ptr<Metric>> Create(const Attributes& /*attributes*/,
                                               const MetricModel& model) {
  return CreateClassMean("recall", &ClassFigures::recall, model);
}

[[maybe_unused]] const bool kRegistered = MetricRegistry::Register(
    "recall", {"of the rows of a class, the fraction that were taken for it: "
               "mean over classes",
               {},
               &Create});

}  // namespace
}  // namespace muster
