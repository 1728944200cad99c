#ifndef WORKER_METRIC_CLASS_TABLE_H_
#define WORKER_METRIC_CLASS_TABLE_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "worker/metric/metric_result.h"

namespace muster {

// The figures by class as a table in Markdown, a line each, without its end.
std::vector<std::string> ClassTableLines(
    absl::Span<const ClassFigures> by_class);

}  // namespace muster

#endif  // WORKER_METRIC_CLASS_TABLE_H_
