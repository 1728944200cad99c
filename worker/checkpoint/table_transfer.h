// Rows of sparse tables between ps tasks and checkpoints, in bounded memory.
#ifndef WORKER_CHECKPOINT_TABLE_TRANSFER_H_
#define WORKER_CHECKPOINT_TABLE_TRANSFER_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpoint_writer.h"
#include "common/checkpoint/row_block.h"
#include "common/rpc/parameter_link.h"
#include "proto/checkpoint.pb.h"
#include "proto/parameter_service.pb.h"
#include "proto/table.pb.h"

namespace muster {

// Rows of a table on one ps task, from a place in their order on, and the place
// where they go on.
using ReadTableRows = std::function<absl::StatusOr<Frame<SnapshotPart>>(
    int ps_task, absl::string_view table, const RowCursor& cursor)>;
// Sends rows of a table, by its index, to the ps tasks that have them.
using LoadTableRows = std::function<absl::Status(int table, const RowBlock&)>;

// The tables as the ps tasks' snapshots have them, with the rows of all tasks.
// Errors: Internal if a ps task has other tables, or other slots.
absl::StatusOr<std::vector<SavedTable>> TablesOf(
    absl::Span<const TableDef> tables,
    absl::Span<const BeginSnapshotReply> snapshots);

// What a save writes of tables.
struct TableSave {
  // TablesOf's.
  absl::Span<const SavedTable> tables;
  int num_ps = 0;
  bool allow_non_finite = false;
  ReadTableRows read;
};

// Writes all rows: of each table those of each ps task, whose logical shards
// follow one another, so that the bytes are the same for any number of tasks.
// Errors: those of `read`; Internal for an answer that is none, or that has no
// end; OutOfRange for a value that is not finite; OfFile: the writer's.
absl::Status SaveTables(const TableSave& save, CheckpointWriter* writer);

// May the tables go on with the slots that were saved? Errors:
// FailedPrecondition naming the table; those of CreateUpdateRule. REQUIRES:
// CheckCompatible.
absl::Status CheckTableSlots(const CheckpointManifest& manifest,
                             absl::Span<const TableDef> tables);

// Loads all rows of the checkpoint. REQUIRES: CheckTableSlots. Errors: those of
// `load`; OfFile: the reader's.
absl::Status LoadTables(const CheckpointReader& reader,
                        absl::Span<const TableDef> tables,
                        const LoadTableRows& load);

}  // namespace muster

#endif  // WORKER_CHECKPOINT_TABLE_TRANSFER_H_
