#ifndef WORKER_WORKER_PROCESS_H_
#define WORKER_WORKER_PROCESS_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/link_choice.h"
#include "worker/task/worker_options.h"

namespace muster {

// The part of the command line that is about ps tasks and the ways to them.
struct PsOptions {
  LinkChoice link = LinkChoice::kAuto;
  // Of the ps tasks in this process: when a worker is lost.
  absl::Duration worker_timeout = absl::Seconds(30);
};

// The life of a process that trains, from its links to its end, with SIGINT and
// SIGTERM. Who holds the parameters is by `options.cluster`: a shard in this
// process (--standalone), ps tasks elsewhere, or, in all-reduce, each worker's
// process a ps task, which is to be had before the worker is made and after it
// has ended: until the job is done or, if the worker fails or is stopped, until
// the chief has saved. The latch is the process's own. Returns the exit code: 0
// if both ended well, or that of the first that did not. Errors: what the
// worker or the ps task could not be made from.
absl::StatusOr<int> RunWorkerProcess(WorkerOptions options,
                                     const PsOptions& ps);

}  // namespace muster

#endif  // WORKER_WORKER_PROCESS_H_
