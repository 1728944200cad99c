#ifndef WORKER_METRIC_CLASS_MEAN_H_
#define WORKER_METRIC_CLASS_MEAN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/metric/metric.h"

namespace muster {

// The metric `name`: the mean of `figure` over classes, which also gives the
// table of its classes, the same for every such metric.
//   Classes: those of labels or of predictions (the first of the largest
//   outputs), as in scikit-learn.
//   Probabilities: each output by itself, as a class that a row has or not (a
//   target above 0.5; predicted by an output above 0). One output's own figure.
// A quotient with 0 below is 0 (scikit-learn's zero_division=0). A row without
// an answer counts as a row of its classes, and is predicted as none.
// Errors: InvalidArgument for a model of numbers.
absl::StatusOr<std::unique_ptr<Metric>> CreateClassMean(
    std::string name, double ClassFigures::*figure, const MetricModel& model);

}  // namespace muster

#endif  // WORKER_METRIC_CLASS_MEAN_H_
