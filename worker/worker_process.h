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
// SIGTERM. `options.cluster` says who holds the parameters: a shard in this
// process (--standalone), ps tasks elsewhere or, in all-reduce, also a ps task
// in this process. That one listens before the worker is made, and outlives it:
// until the job is done or, if the worker fails or is stopped, until the chief
// has saved. Sets options.latch. Returns the exit code: 0 if both ended well,
// else that of the first that did not. Errors: those of WorkerTask::Create and
// PsTask::Start; IsReplaced for a worker that ps task 0 has numbered
// (options.is_numbered), if another one has its number: it is to ask for
// another.
absl::StatusOr<int> RunWorkerProcess(WorkerOptions options,
                                     const PsOptions& ps);

}  // namespace muster

#endif  // WORKER_WORKER_PROCESS_H_
