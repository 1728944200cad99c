#ifndef WORKER_UPDATE_ROWS_H_
#define WORKER_UPDATE_ROWS_H_

#include <cstdint>

#include "proto/training.pb.h"

namespace muster {

// Rows whose mean gradient is one update of the parameters. `worker_rows` is
// those of one push of one worker (batch size x towers x accumulated batches).
// async and bounded staleness apply each push alone; sync the mean of
// replicas_to_aggregate pushes, by default of all total_replicas, by default of
// all `workers`. A step of sync that closes with fewer, because workers are
// lost, has fewer rows: the number stays that of the whole job.
int64_t UpdateRows(const ReplicationSpec& replication, int64_t worker_rows,
                   int64_t workers);

}  // namespace muster

#endif  // WORKER_UPDATE_ROWS_H_
