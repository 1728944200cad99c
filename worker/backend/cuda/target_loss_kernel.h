#ifndef WORKER_BACKEND_CUDA_TARGET_LOSS_KERNEL_H_
#define WORKER_BACKEND_CUDA_TARGET_LOSS_KERNEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/backend/cuda/kernel_launch.h"

namespace muster {

// Device memory; operation.h has the formulas.
struct TargetLossMemory {
  const float* src = nullptr;      // [batch, outputs]
  const float* targets = nullptr;  // as src
  double* loss = nullptr;
  int64_t* correct = nullptr;    // null: not wanted
  float* diff_src = nullptr;     // as src; null: not wanted
  double* row_losses = nullptr;  // [batch], of no meaning outside
  int64_t* row_hits = nullptr;   // likewise
  // Else squared errors.
  bool is_cross_entropy = false;
  const float* weights = nullptr;  // [batch], of rows; null: each is 1
};

// A launcher: Internal on failure. Sums in a fixed order. REQUIRES: rows in
// [1, batch].
absl::Status TargetLoss(const KernelStream& to, int64_t batch, int64_t outputs,
                        int64_t rows, const TargetLossMemory& memory);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_TARGET_LOSS_KERNEL_H_
