#ifndef WORKER_CLIENT_PUSH_OUTCOME_H_
#define WORKER_CLIENT_PUSH_OUTCOME_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/client/pulled_versions.h"
#include "worker/client/slice_send.h"

namespace muster {

// What became of one push, over all parts.
struct PushOutcome {
  // In updates between pull and apply.
  int64_t max_staleness = 0;
  double mean_staleness = 0;
  // Parts that had been applied by an earlier attempt.
  int64_t duplicate_parts = 0;
  // Sends after the first of each part.
  int64_t retries = 0;
  // Synchronous replication: a shard has made the update of that round without
  // this gradient; no shard uses it.
  bool late = false;
  // The version that was pulled, by ps task; the oldest of its parts.
  std::vector<int64_t> pulled_versions;
  // Of the new values, if they were asked for or are read in place; else null.
  std::shared_ptr<const PulledVersions> new_versions;
  // Of the values, each part counted once: as they were sent, and what they
  // take as float32.
  int64_t sent_bytes = 0;
  int64_t float32_bytes = 0;
  // By ps task and part.
  std::vector<SliceSend> sends;
};

}  // namespace muster

#endif  // WORKER_CLIENT_PUSH_OUTCOME_H_
