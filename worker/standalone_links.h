#ifndef WORKER_STANDALONE_LINKS_H_
#define WORKER_STANDALONE_LINKS_H_

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "worker/client/link/shard_link.h"

namespace muster {

// --standalone: the one ps is in this process, and applies gradients with
// `threads`. `clock` outlives the links.
WorkerLinks MakeStandaloneLinks(const Clock* clock, int threads,
                                absl::Duration worker_timeout);

// For lines of such a training: nobody has started a /job:ps/task:0, which is
// "this process" there.
Reporter NamingThisProcess(Reporter reporter);

}  // namespace muster

#endif  // WORKER_STANDALONE_LINKS_H_
