#include "worker/update_rows.h"

namespace muster {

int64_t UpdateRows(const ReplicationSpec& replication, int64_t worker_rows,
                   int64_t workers) {
  if (!replication.has_sync()) return worker_rows;
  const SyncReplication& sync = replication.sync();
  if (sync.replicas_to_aggregate() > 0) {
    return worker_rows * sync.replicas_to_aggregate();
  }
  if (sync.total_replicas() > 0) return worker_rows * sync.total_replicas();
  return worker_rows * workers;
}

}  // namespace muster
