#ifndef TESTS_SIMULATION_ROW_MODEL_H_
#define TESTS_SIMULATION_ROW_MODEL_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "proto/table.pb.h"

namespace muster {

// One row as a checkpoint has it.
struct SavedRow {
  int64_t id = 0;
  int64_t updates = 0;
  std::vector<float> values;

  bool operator==(const SavedRow& other) const {
    return id == other.id && updates == other.updates && values == other.values;
  }
};

// A table on one ps task as plainly as it can be said: the oracle of RowWorld.
// Rows are sums of what was pushed (SGD of rate 1), exact in float32.
class RowModel {
 public:
  explicit RowModel(TableDef table) : table_(std::move(table)) {}

  // The row's values; first ones if it is not there.
  std::vector<float> Values(int64_t id) const;
  int64_t rows() const { return static_cast<int64_t>(rows_.size()); }
  int64_t evicted() const { return evicted_; }

  // Subtracts gradients [n, dim] from rows, as the update behind `version`
  // others; ids in the order in which the ps task sees them.
  void Update(const std::vector<int64_t>& ids,
              const std::vector<float>& gradients, int64_t version);
  void Load(const SavedRow& row);

  // By logical shard, then by id.
  std::vector<SavedRow> Saved() const;

 private:
  struct Row {
    std::vector<float> values;
    int64_t updates = 0;
    int64_t version = -1;
  };

  // Makes room for another row of the logical shard, if it is full.
  void Evict(int logical_shard);

  TableDef table_;
  // By logical shard and id.
  std::map<std::pair<int, int64_t>, Row> rows_;
  int64_t evicted_ = 0;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_ROW_MODEL_H_
