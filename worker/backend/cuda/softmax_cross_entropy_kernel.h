#ifndef WORKER_BACKEND_CUDA_SOFTMAX_CROSS_ENTROPY_KERNEL_H_
#define WORKER_BACKEND_CUDA_SOFTMAX_CROSS_ENTROPY_KERNEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/backend/cuda/kernel_launch.h"

namespace muster {

// Device memory; operation.h has the formulas.
struct SoftmaxCrossEntropyMemory {
  const float* src = nullptr;       // [batch, classes]
  const int32_t* labels = nullptr;  // [batch]
  double* loss = nullptr;
  int64_t* correct = nullptr;
  float* diff_src = nullptr;     // as src; null: not wanted
  double* row_losses = nullptr;  // [batch], of no meaning outside
  int64_t* row_hits = nullptr;   // likewise
  float label_smoothing = 0;
  const float* weights = nullptr;  // [batch], of rows; null: each is 1
};

// A launcher: Internal on failure. Sums in a fixed order. A label out of
// [0, classes) makes the loss NaN; nothing is read there.
// REQUIRES: rows in [1, batch].
absl::Status SoftmaxCrossEntropy(const KernelStream& to, int64_t batch,
                                 int64_t classes, int64_t rows,
                                 const SoftmaxCrossEntropyMemory& memory);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_SOFTMAX_CROSS_ENTROPY_KERNEL_H_
