#include <memory>

#include "worker/metric/class_mean.h"
#include "worker/metric/metric.h"

namespace muster {
namespace {

absl::StatusOr<std::unique_ptr<Metric>> Create(const Attributes& /*attributes*/,
                                               const MetricModel& model) {
  return CreateClassMean("f1", &ClassFigures::f1, model);
}

[[maybe_unused]] const bool kRegistered = MetricRegistry::Register(
    "f1",
    {"harmonic mean of precision and recall of a class: mean over classes",
     {},
     &Create});

}  // namespace
}  // namespace muster
