#ifndef COMMON_CHECKPOINT_RETENTION_H_
#define COMMON_CHECKPOINT_RETENTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace muster {

// Which checkpoints of a train_dir stay.
struct Retention {
  // The newest ones; at least 2, for the newest may turn out to be damaged.
  int keep = 5;
  // The first of the others in every so many hours of training stays for
  // good, but for the first such period of a run. 0: none.
  double keep_every_hours = 0;
};

// A checkpoint as far as it is known without reading its tensors.
struct SavedCheckpoint {
  int64_t global_step = 0;
  // CheckpointManifest.trained_s; 0 if its manifest cannot be read.
  double trained_s = 0;
};

// The steps of those that go. `newest_first`: all that count, the one that was
// just saved included. The one of `best_step`, if there is one, stays beside
// the others. A function of what is on the disk alone, so a restart goes on
// where the run before it was: those that were kept for good are again the
// first ones of their periods.
std::vector<int64_t> CheckpointsToRemove(
    absl::Span<const SavedCheckpoint> newest_first, const Retention& retention,
    std::optional<int64_t> best_step = std::nullopt);

}  // namespace muster

#endif  // COMMON_CHECKPOINT_RETENTION_H_
