#ifndef WORKER_METRIC_METRIC_H_
#define WORKER_METRIC_METRIC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/finite.h"
#include "common/base/registry.h"
#include "common/config/attributes.h"
#include "worker/layer/layer.h"
#include "worker/metric/metric_result.h"

namespace muster {

// Rows of an evaluation: what a model made of them, and what it should have.
struct MetricRows {
  // [rows, num_outputs], before any softmax or sigmoid.
  absl::Span<const float> outputs;
  // [rows]; empty for a loss that reads targets.
  absl::Span<const int32_t> labels;
  // As outputs; empty for a loss that reads classes.
  absl::Span<const float> targets;
  int64_t num_outputs = 1;

  int64_t rows() const {
    return static_cast<int64_t>(outputs.size()) / num_outputs;
  }
  absl::Span<const float> OutputsOf(int64_t row) const {
    return outputs.subspan(row * num_outputs, num_outputs);
  }
  // Whether the model has said anything of the row: no output is NaN or
  // infinite. A row without an answer is never right.
  bool HasAnswer(int64_t row) const {
    return FirstNonFinite(OutputsOf(row)) < 0;
  }
  absl::Span<const float> TargetsOf(int64_t row) const {
    return targets.subspan(row * num_outputs, num_outputs);
  }
};

// A number that an evaluation makes.
struct FigureDef {
  std::string name;
  bool smaller_is_better = false;
};

// A figure over the rows of one evaluation. One thread.
class Metric {
 public:
  virtual ~Metric() = default;

  // The values that Finish appends, in its order; a table is none.
  virtual std::vector<FigureDef> Figures() const = 0;
  virtual void Add(const MetricRows& rows) = 0;
  // Appends the figure of all rows so far. REQUIRES: there was one.
  virtual void Finish(MetricResult* result) const = 0;
};

// The model whose outputs a metric looks at.
struct MetricModel {
  int64_t num_outputs = 1;
  LossType loss;
  // Of the data set, by class; empty if its classes have none.
  std::vector<std::string> class_names = {};
};

// One kind of metric, as its source file registers it.
struct MetricType {
  // One line for `musterctl list`.
  std::string help;
  std::vector<AttrDef> attributes;
  // Errors: InvalidArgument that says what was wanted and what was found, such
  // as a metric of classes for a model without; MetricSet adds the type.
  absl::StatusOr<std::unique_ptr<Metric>> (*create)(
      const Attributes& attributes, const MetricModel& model) = nullptr;
};

struct MetricTag {
  static constexpr char kKind[] = "metric";
};

// Metrics by `evaluation.metric.type`, which are listed in metrics.bzl.
using MetricRegistry = Registry<MetricTag, MetricType>;

// Every registered metric with its attributes.
std::string DescribeMetrics();

// OK for a model of classes, one a row. InvalidArgument else.
absl::Status WantClasses(const MetricModel& model);
// OK for a model of classes, or whose outputs are a probability each.
absl::Status WantProbabilities(const MetricModel& model);
// OK for a model whose outputs are compared with targets as they stand.
absl::Status WantTargets(const MetricModel& model);

// By class, or by output; a number where there is no name. One output that is a
// probability is that of class 1.
std::vector<std::string> OutputNames(const MetricModel& model);

}  // namespace muster

#endif  // WORKER_METRIC_METRIC_H_
