#ifndef WORKER_CHECKPOINT_GIVEN_ROWS_H_
#define WORKER_CHECKPOINT_GIVEN_ROWS_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint/row_block.h"
#include "common/checkpoint/safetensors_reader.h"
#include "proto/table.pb.h"
#include "worker/checkpoint/table_transfer.h"

namespace muster {

// The rows that tables start from: of --init_from, "user/ids", I64 [n], and
// "user/values", F32 [n, dim], in a checkpoint's tables.safetensors or in a
// file of anybody's. Thread-safe.
class GivenRows {
 public:
  // Finds each table's, by its name, in `reader`, which may be null: there are
  // none. Both outlive this. Errors: InvalidArgument for tensors of another
  // shape or dtype, and for values that are not finite.
  static absl::StatusOr<GivenRows> Create(absl::Span<const TableDef> tables,
                                          const SafetensorsReader* reader);

  // Those of which there are no rows.
  const std::vector<std::string>& missing() const { return missing_; }
  // The tensors that it reads.
  const std::set<std::string>& tensors() const { return tensors_; }

  // Loads all rows, without updates and with slots at their start values.
  // Errors: those of `load`; OfFile: the file's.
  absl::Status Load(const LoadTableRows& load) const;

 private:
  GivenRows(absl::Span<const TableDef> tables, const SafetensorsReader* reader)
      : tables_(tables), reader_(reader) {}

  // Errors: InvalidArgument.
  absl::Status Find(int table);
  absl::Status CheckValues(int table) const;
  absl::Status LoadTable(int table, const LoadTableRows& load) const;

  absl::Span<const TableDef> tables_;
  const SafetensorsReader* reader_;
  // By table; -1 for one that has none.
  std::vector<int64_t> rows_;
  std::vector<std::string> missing_;
  std::set<std::string> tensors_;
};

}  // namespace muster

#endif  // WORKER_CHECKPOINT_GIVEN_ROWS_H_
