#ifndef WORKER_CHECKPOINT_CHECKPOINT_QUEUE_H_
#define WORKER_CHECKPOINT_CHECKPOINT_QUEUE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace muster {

// A checkpoint folder, as a look at the train_dir finds it.
struct FoundCheckpoint {
  int64_t global_step = 0;
  // The manifest's checksum: another one for another checkpoint of the same
  // step, which a training that went back writes; 0 if it cannot be read.
  uint32_t stamp = 0;
};

// The checkpoints of a train_dir that are still to be evaluated: each one once,
// the oldest first, so that curves grow to the right. State only: no file, no
// clock. One thread.
class CheckpointQueue {
 public:
  // Takes those that are there now, in any order. Returns the steps of those
  // that waited and are gone.
  std::vector<int64_t> Update(absl::Span<const FoundCheckpoint> found);

  // The oldest that waits.
  std::optional<FoundCheckpoint> Next() const;

  // `checkpoint` was evaluated, or cannot be: it does not wait again.
  void Settle(const FoundCheckpoint& checkpoint);

 private:
  // Stamps by step. Those that wait, and those that were settled and are still
  // there.
  std::map<int64_t, uint32_t> waiting_;
  std::map<int64_t, uint32_t> settled_;
};

}  // namespace muster

#endif  // WORKER_CHECKPOINT_CHECKPOINT_QUEUE_H_
