#include "common/cluster/placement_table.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/cluster/placement_strategy.h"

namespace muster {
namespace {

// PlaceTensors has checked the tensors.
int64_t Bytes(const TensorDef& tensor) {
  return TensorBytes(tensor).value_or(0);
}

std::vector<double> BytesOfTasks(absl::Span<const TensorDef> tensors,
                                 absl::Span<const int> tasks, int num_ps) {
  assert(tensors.size() == tasks.size());
  std::vector<double> totals(static_cast<size_t>(num_ps), 0.0);
  for (size_t i = 0; i < tensors.size(); ++i) {
    totals[static_cast<size_t>(tasks[i])] +=
        static_cast<double>(Bytes(tensors[i]));
  }
  return totals;
}

}  // namespace

std::string PlacementTable(absl::Span<const TensorDef> tensors,
                           absl::Span<const int> tasks, int num_ps) {
  size_t name_width = std::string("parameter").size();
  for (const TensorDef& tensor : tensors) {
    name_width = std::max(name_width, tensor.name().size());
  }
  const int width = static_cast<int>(name_width);
  std::string table = absl::StrFormat("%-*s  %-18s  %12s  %s\n", width,
                                      "parameter", "shape", "bytes", "task");
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string shape =
        absl::StrCat("[", absl::StrJoin(tensors[i].shape(), ", "), "]");
    absl::StrAppendFormat(&table, "%-*s  %-18s  %12d  /job:ps/task:%d\n", width,
                          tensors[i].name(), shape, Bytes(tensors[i]),
                          tasks[i]);
  }
  const std::vector<double> totals = BytesOfTasks(tensors, tasks, num_ps);
  for (int task = 0; task < num_ps; ++task) {
    absl::StrAppendFormat(&table,
                          "/job:ps/task:%d holds %d parameters, %.0f bytes\n",
                          task, std::count(tasks.begin(), tasks.end(), task),
                          totals[static_cast<size_t>(task)]);
  }
  absl::StrAppendFormat(&table, "imbalance ratio (fullest over mean): %.2f\n",
                        ImbalanceRatio(tensors, tasks, num_ps));
  return table;
}

double ImbalanceRatio(absl::Span<const TensorDef> tensors,
                      absl::Span<const int> tasks, int num_ps) {
  const std::vector<double> totals = BytesOfTasks(tensors, tasks, num_ps);
  const double sum = std::accumulate(totals.begin(), totals.end(), 0.0);
  if (sum <= 0) return 1;
  return *std::max_element(totals.begin(), totals.end()) * num_ps / sum;
}

}  // namespace muster
