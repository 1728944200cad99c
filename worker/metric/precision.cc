#include <memory>

#include "worker/metric/class_mean.h"
#include "worker/metric/metric.h"

namespace muster {
namespace {

absl::StatusOr<std::unique_ptr<Metric>> Create(const Attributes& /*attributes*/,
                                               const MetricModel& model) {
  return CreateClassMean("precision", &ClassFigures::precision, model);
}

[[maybe_unused]] const bool kRegistered = MetricRegistry::Register(
    "precision", {"of the rows taken for a class, the fraction that are of it: "
                  "mean over classes",
                  {},
                  &Create});

}  // namespace
}  // namespace muster
