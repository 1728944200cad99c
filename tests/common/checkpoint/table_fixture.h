// Rows of tables and checkpoints of them, for tests.
#ifndef TESTS_COMMON_CHECKPOINT_TABLE_FIXTURE_H_
#define TESTS_COMMON_CHECKPOINT_TABLE_FIXTURE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_writer.h"
#include "common/checkpoint/row_block.h"
#include "common/tensor/row_hash.h"
#include "proto/checkpoint.pb.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace muster {

inline TableDef MakeTable(const std::string& name, int64_t dim,
                          const std::string& rule = "adagrad") {
  TableDef table;
  table.set_name(name);
  table.set_dim(dim);
  table.mutable_optimizer()->set_name(rule);
  return table;
}

inline SavedTable MakeSavedTable(const TableDef& table, int64_t rows,
                                 std::vector<std::string> slots = {
                                     "accumulator"}) {
  SavedTable saved;
  *saved.mutable_definition() = table;
  for (std::string& slot : slots) saved.add_slots(std::move(slot));
  saved.set_rows(rows);
  return saved;
}

// Ids in the order of a checkpoint.
inline std::vector<int64_t> InOrder(const std::string& table,
                                    std::vector<int64_t> ids) {
  const RowHash hash(table);
  std::sort(ids.begin(), ids.end(), [&hash](int64_t a, int64_t b) {
    return std::make_pair(hash.LogicalShardOf(a), a) <
           std::make_pair(hash.LogicalShardOf(b), b);
  });
  return ids;
}

// Rows of these ids. Each has `version` updates; the float of an id, stream and
// element is version + id + stream / 8 + element / 64.
inline RowBlock MakeRows(const SavedTable& table,
                         const std::vector<int64_t>& ids, int64_t version = 1) {
  RowBlock rows(table.definition().dim(), table.slots_size());
  rows.Resize(static_cast<int64_t>(ids.size()));
  const int64_t dim = rows.dim();
  auto* const id = reinterpret_cast<int64_t*>(rows.stream_data(RowBlock::kIds));
  auto* const t =
      reinterpret_cast<int64_t*>(rows.stream_data(RowBlock::kUpdates));
  for (size_t i = 0; i < ids.size(); ++i) {
    id[i] = ids[i];
    t[i] = version;
    for (size_t s = RowBlock::kValues; s < rows.num_streams(); ++s) {
      auto* const row = reinterpret_cast<float*>(rows.stream_data(s)) + i * dim;
      for (int64_t k = 0; k < dim; ++k) {
        row[k] = static_cast<float>(version + ids[i] % 1000) +
                 static_cast<float>(s) / 8 + static_cast<float>(k) / 64;
      }
    }
  }
  return rows;
}

// A table and its rows, in any order.
struct ExampleTable {
  SavedTable saved;
  std::vector<int64_t> ids;
};

inline ExampleTable MakeExampleTable(const std::string& name, int64_t dim,
                                     std::vector<int64_t> ids) {
  const auto rows = static_cast<int64_t>(ids.size());
  return {MakeSavedTable(MakeTable(name, dim), rows),
          InOrder(name, std::move(ids))};
}

// A whole save of these tables and parameters.
inline absl::Status SaveTablesExample(
    FileSystem* file_system, const std::string& train_dir, int64_t step,
    const std::vector<ExampleTable>& tables, int64_t version = 1,
    const std::vector<TensorDef>& parameters = SmallParameters()) {
  std::vector<SavedTable> saved;
  for (const ExampleTable& table : tables) saved.push_back(table.saved);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<CheckpointWriter> writer,
      CheckpointWriter::Create({file_system, train_dir, step, Retention()},
                               parameters, ExampleSlots(), saved));
  for (const CheckpointPiece& piece : writer->pieces()) {
    RETURN_IF_ERROR(writer->Append(ExampleBytes(piece, version)));
  }
  for (size_t i = 0; i < tables.size(); ++i) {
    RETURN_IF_ERROR(writer->AppendRows(
        static_cast<int>(i), MakeRows(saved[i], tables[i].ids, version)));
  }
  return writer->Commit(ExampleManifest(step)).status();
}

}  // namespace muster

#endif  // TESTS_COMMON_CHECKPOINT_TABLE_FIXTURE_H_
