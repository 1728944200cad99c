#ifndef WORKER_CTL_CHECKPOINT_DIFF_H_
#define WORKER_CTL_CHECKPOINT_DIFF_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_reader.h"

namespace muster {

struct CheckpointDiff {
  // Every tensor of both is in the other, bit for bit. Steps, times and
  // positions do not count.
  bool equal = true;
  // One line for each of the first tensors that differ, and a sum.
  std::string text;
};

// Compares parameters and slots in pieces of 1 MiB. Errors: the files'.
absl::StatusOr<CheckpointDiff> CompareCheckpoints(const CheckpointReader& a,
                                                  const CheckpointReader& b);

}  // namespace muster

#endif  // WORKER_CTL_CHECKPOINT_DIFF_H_
