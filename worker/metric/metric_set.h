#ifndef WORKER_METRIC_METRIC_SET_H_
#define WORKER_METRIC_METRIC_SET_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/training.pb.h"
#include "worker/metric/metric.h"

namespace muster {

// The metrics of one evaluation:
//
//   ASSIGN_OR_RETURN(MetricSet metrics, MetricSet::Create(spec, model));
//   metrics.Add(rows);
//   const MetricResult result = metrics.Finish();
class MetricSet {
 public:
  // Those of evaluation.metric, else those of the model's loss. Errors:
  // InvalidArgument naming evaluation.metric (an unknown type or attribute, a
  // metric that does not fit the model, two of one name).
  static absl::StatusOr<MetricSet> Create(const EvaluationSpec& spec,
                                          const MetricModel& model);

  // The values of Finish.
  std::vector<FigureDef> Figures() const;

  void Add(const MetricRows& rows) {
    for (const auto& metric : metrics_) metric->Add(rows);
  }
  // REQUIRES: a row was added.
  MetricResult Finish() const;

 private:
  MetricSet() = default;

  std::vector<std::unique_ptr<Metric>> metrics_;
};

}  // namespace muster

#endif  // WORKER_METRIC_METRIC_SET_H_
