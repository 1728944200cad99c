#ifndef WORKER_METRIC_METRIC_RESULT_H_
#define WORKER_METRIC_METRIC_RESULT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// Those of one class, or of one output that is a probability.
struct ClassFigures {
  std::string name;
  // That are of the class.
  int64_t rows = 0;
  double precision = 0;
  double recall = 0;
  double f1 = 0;
};

// The figures of an evaluation.
struct MetricResult {
  struct Value {
    std::string name;
    double value = 0;
  };
  // Counts by row and column.
  struct Table {
    std::string name;
    std::vector<std::vector<int64_t>> counts;
  };
  std::vector<Value> values;
  std::vector<Table> tables;
  // Empty without a metric that is a mean over classes.
  std::vector<ClassFigures> by_class = {};
  // A line each for the operator: what a value leaves out, and why.
  std::vector<std::string> remarks = {};

  // nullopt if there is none of this name.
  std::optional<double> Find(absl::string_view name) const {
    for (const Value& value : values) {
      if (value.name == name) return value.value;
    }
    return std::nullopt;
  }
};

}  // namespace muster

#endif  // WORKER_METRIC_METRIC_RESULT_H_
