#ifndef WORKER_BACKEND_CUDA_BATCH_NORM_KERNEL_H_
#define WORKER_BACKEND_CUDA_BATCH_NORM_KERNEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/backend/cuda/channel_sum_kernel.h"
#include "worker/backend/cuda/kernel_launch.h"

namespace muster {

// Device memory: src, dst and their gradients as ChannelShape says, all others
// [channels]; operation.h has the formulas.
struct BatchNormMemory {
  const float* src = nullptr;
  const float* weights = nullptr;
  const float* bias = nullptr;
  float* dst = nullptr;
  float* mean = nullptr;
  float* variance = nullptr;
  const float* diff_dst = nullptr;
  float* diff_src = nullptr;
  float* diff_weights = nullptr;
  float* diff_bias = nullptr;
  float* scratch = nullptr;
};

// The scratch of training's forward and backward, in floats.
int64_t BatchNormForwardScratch(const ChannelShape& shape);
int64_t BatchNormBackwardScratch(const ChannelShape& shape);

// Launchers, Internal on failure. All sums are in a fixed order.

// src, weights, bias -> mean, variance, dst. The variance in a second pass,
// with divisor outer * inner.
absl::Status BatchNormTraining(const KernelStream& to,
                               const ChannelShape& shape, double epsilon,
                               const BatchNormMemory& memory);
// src, weights, bias, mean, variance -> dst.
absl::Status BatchNormInference(const KernelStream& to,
                                const ChannelShape& shape, double epsilon,
                                const BatchNormMemory& memory);
// src, weights, mean, variance, diff_dst -> diff_src, diff_weights, diff_bias.
absl::Status BatchNormBackward(const KernelStream& to,
                               const ChannelShape& shape, double epsilon,
                               const BatchNormMemory& memory);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_BATCH_NORM_KERNEL_H_
