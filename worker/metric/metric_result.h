#ifndef WORKER_METRIC_METRIC_RESULT_H_
#define WORKER_METRIC_METRIC_RESULT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

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
