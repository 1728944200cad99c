#include "common/cluster/placement_table.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/tensor/dtype.h"

namespace muster {
namespace {

// PlaceTensors has checked the tensors.
int64_t Bytes(const TensorDef& tensor, const TensorExtent& extent) {
  return extent.length * static_cast<int64_t>(SizeOf(tensor.dtype()));
}

std::vector<double> BytesOfTasks(absl::Span<const TensorDef> tensors,
                                 const Placement& placement, int num_ps) {
  assert(tensors.size() == placement.size());
  std::vector<double> totals(static_cast<size_t>(num_ps), 0.0);
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (const TensorExtent& extent : placement[i]) {
      totals[static_cast<size_t>(extent.ps)] +=
          static_cast<double>(Bytes(tensors[i], extent));
    }
  }
  return totals;
}

// How many parameters the task has extents of.
int64_t ParametersOn(int task, const Placement& placement) {
  return std::count_if(placement.begin(), placement.end(),
                       [task](const std::vector<TensorExtent>& extents) {
                         return std::any_of(extents.begin(), extents.end(),
                                            [task](const TensorExtent& extent) {
                                              return extent.ps == task;
                                            });
                       });
}

// The lines of one parameter.
void AppendParameter(const TensorDef& tensor,
                     absl::Span<const TensorExtent> extents, int name_width,
                     std::string* table) {
  const std::string shape =
      absl::StrCat("[", absl::StrJoin(tensor.shape(), ", "), "]");
  for (const TensorExtent& extent : extents) {
    absl::StrAppendFormat(table, "%-*s  %-18s  %12d  /job:ps/task:%d",
                          name_width, tensor.name(), shape,
                          Bytes(tensor, extent), extent.ps);
    if (extents.size() > 1) {
      absl::StrAppendFormat(table, " [%d, %d)", extent.begin, extent.end());
    }
    table->push_back('\n');
  }
}

}  // namespace

std::string PlacementTable(absl::Span<const TensorDef> tensors,
                           const Placement& placement, int num_ps) {
  size_t name_width = std::string("parameter").size();
  for (const TensorDef& tensor : tensors) {
    name_width = std::max(name_width, tensor.name().size());
  }
  const int width = static_cast<int>(name_width);
  std::string table = absl::StrFormat("%-*s  %-18s  %12s  %s\n", width,
                                      "parameter", "shape", "bytes", "task");
  for (size_t i = 0; i < tensors.size(); ++i) {
    AppendParameter(tensors[i], placement[i], width, &table);
  }
  const std::vector<double> totals = BytesOfTasks(tensors, placement, num_ps);
  for (int task = 0; task < num_ps; ++task) {
    absl::StrAppendFormat(
        &table, "/job:ps/task:%d holds %d parameters, %.0f bytes\n", task,
        ParametersOn(task, placement), totals[static_cast<size_t>(task)]);
  }
  absl::StrAppendFormat(&table, "imbalance ratio (fullest over mean): %.2f\n",
                        ImbalanceRatio(tensors, placement, num_ps));
  return table;
}

double ImbalanceRatio(absl::Span<const TensorDef> tensors,
                      const Placement& placement, int num_ps) {
  const std::vector<double> totals = BytesOfTasks(tensors, placement, num_ps);
  const double sum = std::accumulate(totals.begin(), totals.end(), 0.0);
  if (sum <= 0) return 1;
  return *std::max_element(totals.begin(), totals.end()) * num_ps / sum;
}

}  // namespace muster
