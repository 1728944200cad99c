#ifndef WORKER_CTL_TABLE_DIFF_H_
#define WORKER_CTL_TABLE_DIFF_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_reader.h"

namespace muster {

// Compares the rows of a table of two checkpoints, by its indices in their
// manifests: how many rows only one of them has, how many that both have
// differ, and how far. "" if all are the same, bit for bit. Keeps two blocks of
// rows in memory. Errors: the files'.
absl::StatusOr<std::string> CompareTables(const CheckpointReader& a, int in_a,
                                          const CheckpointReader& b, int in_b);

}  // namespace muster

#endif  // WORKER_CTL_TABLE_DIFF_H_
