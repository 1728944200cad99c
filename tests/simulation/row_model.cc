#include "tests/simulation/row_model.h"

#include <algorithm>

#include "absl/types/span.h"
#include "common/tensor/first_row.h"
#include "common/tensor/row_hash.h"

namespace muster {

std::vector<float> RowModel::Values(int64_t id) const {
  const auto row = rows_.find({RowHash(table_.name()).LogicalShardOf(id), id});
  if (row != rows_.end()) return row->second.values;
  std::vector<float> values(table_.dim());
  FirstRow(table_).Fill(id, absl::MakeSpan(values));
  return values;
}

void RowModel::Evict(int logical_shard) {
  if (table_.max_rows() == 0) return;
  const int64_t most = std::max<int64_t>(1, table_.max_rows() / kLogicalShards);
  const auto begin = rows_.lower_bound({logical_shard, INT64_MIN});
  const auto end = rows_.lower_bound({logical_shard + 1, INT64_MIN});
  if (std::distance(begin, end) < most) return;
  ++evicted_;
  rows_.erase(std::min_element(begin, end, [](const auto& a, const auto& b) {
    return std::make_pair(a.second.version, a.first.second) <
           std::make_pair(b.second.version, b.first.second);
  }));
}

void RowModel::Update(const std::vector<int64_t>& ids,
                      const std::vector<float>& gradients, int64_t version) {
  const RowHash hash(table_.name());
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::pair<int, int64_t> key = {hash.LogicalShardOf(ids[i]), ids[i]};
    if (rows_.find(key) == rows_.end()) {
      Row row;
      row.values = Values(ids[i]);
      Evict(key.first);
      rows_.emplace(key, std::move(row));
    }
    Row& row = rows_.find(key)->second;
    for (int64_t k = 0; k < table_.dim(); ++k) {
      row.values[k] -= gradients[i * table_.dim() + k];
    }
    ++row.updates;
    row.version = version;
  }
}

void RowModel::Load(const SavedRow& row) {
  rows_[{RowHash(table_.name()).LogicalShardOf(row.id), row.id}] = {
      row.values, row.updates, -1};
}

std::vector<SavedRow> RowModel::Saved() const {
  std::vector<SavedRow> saved;
  for (const auto& [key, row] : rows_) {
    saved.push_back({key.second, row.updates, row.values});
  }
  return saved;
}

}  // namespace muster
