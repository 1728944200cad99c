#include "ps_server/shard/row_mean.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>

#include "absl/types/span.h"

namespace muster {
namespace {

// Rows that are made at once: means of them are held, not of all.
constexpr size_t kRowsAtOnce = 4096;

// One worker's gradient of a row.
struct Gradient {
  int logical_shard;
  int64_t id;
  const float* values;

  bool IsOf(const Gradient& other) const { return id == other.id; }
};

// Appends the mean of the gradients of one row.
void AppendMean(absl::Span<const Gradient> gradients, size_t num_workers,
                CheckedRows* rows) {
  rows->ids.push_back(gradients.front().id);
  const size_t begin = rows->gradients.size();
  const float* const first = gradients.front().values;
  rows->gradients.insert(rows->gradients.end(), first, first + rows->dim);
  float* const mean = rows->gradients.data() + begin;
  for (const Gradient& gradient : gradients.subspan(1)) {
    for (int64_t i = 0; i < rows->dim; ++i) mean[i] += gradient.values[i];
  }
  const auto divisor = static_cast<float>(num_workers);
  for (int64_t i = 0; i < rows->dim; ++i) mean[i] /= divisor;
}

// The gradients of one table's rows, those of a row beside each other in the
// order of their workers.
std::vector<Gradient> Gather(absl::Span<const CheckedRows* const> parts) {
  std::vector<Gradient> all;
  for (const CheckedRows* const part : parts) {
    const float* values = part->gradients.data();
    for (const int64_t id : part->ids) {
      all.push_back({part->hash.LogicalShardOf(id), id, values});
      values += part->dim;
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Gradient& a, const Gradient& b) {
                     return std::tie(a.logical_shard, a.id) <
                            std::tie(b.logical_shard, b.id);
                   });
  return all;
}

}  // namespace

void ApplyRowMeans(const std::vector<std::vector<CheckedRows>>& workers,
                   double rate_factor, PartApplier& applier) {
  std::map<int, std::vector<const CheckedRows*>> parts;  // by table
  for (const std::vector<CheckedRows>& worker : workers) {
    for (const CheckedRows& part : worker) parts[part.table].push_back(&part);
  }
  for (const auto& [table, of_table] : parts) {
    const std::vector<Gradient> all = Gather(of_table);
    CheckedRows rows = {table, of_table[0]->dim, of_table[0]->hash, {}, {}};
    for (size_t begin = 0; begin < all.size();) {
      size_t end = begin + 1;
      while (end < all.size() && all[end].IsOf(all[begin])) ++end;
      AppendMean(absl::MakeConstSpan(all).subspan(begin, end - begin),
                 workers.size(), &rows);
      begin = end;
      if (rows.ids.size() < kRowsAtOnce && begin < all.size()) continue;
      applier.ApplyRows(rows, rate_factor);
      rows.ids.clear();
      rows.gradients.clear();
    }
  }
}

}  // namespace muster
