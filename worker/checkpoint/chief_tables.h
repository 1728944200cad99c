// The chief's calls for rows of tables.
#ifndef WORKER_CHECKPOINT_CHIEF_TABLES_H_
#define WORKER_CHECKPOINT_CHIEF_TABLES_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "common/checkpoint/row_block.h"
#include "proto/parameter_service.pb.h"
#include "worker/checkpoint/table_transfer.h"
#include "worker/client/chief_client.h"

namespace muster {

// Reads of these snapshots. Both outlive the result.
inline ReadTableRows RowsOfSnapshots(
    ChiefClient* chief, const std::vector<BeginSnapshotReply>& snapshots) {
  return [chief, &snapshots](int ps_task, absl::string_view table,
                             const RowCursor& cursor) {
    return chief->ReadRows(snapshots, ps_task, table, cursor);
  };
}

// Loads at the epoch that was set. `chief` outlives the result.
inline LoadTableRows LoadIntoShards(ChiefClient* chief) {
  return [chief](int table, const RowBlock& rows) {
    LoadedRows loaded = {table, rows.ids(), rows.updates(), {}};
    for (size_t i = RowBlock::kValues; i < rows.num_streams(); ++i) {
      loaded.streams.push_back(rows.floats(i));
    }
    return chief->LoadRows(loaded);
  };
}

}  // namespace muster

#endif  // WORKER_CHECKPOINT_CHIEF_TABLES_H_
