#ifndef WORKER_BACKEND_CUDA_CHANNEL_SUM_KERNEL_H_
#define WORKER_BACKEND_CUDA_CHANNEL_SUM_KERNEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/backend/cuda/kernel_launch.h"

namespace muster {

// How the values of each channel lie: as [outer, channels, inner], row-major.
//   activations [N, C, H, W]: {N, C, H * W}, in nhwc {N * H * W, C, 1}
//   the columns of a matrix:  {rows, columns, 1}
struct ChannelShape {
  int64_t outer = 1;
  int64_t channels = 1;
  int64_t inner = 1;
};

// A sum by channel is made in parts, one by each thread; the parts are summed
// in the same way. All in a fixed order.

// The parts in which the values of each channel are summed at first.
int64_t PartsOf(const ChannelShape& shape);

// The scratch of SumChannels, in elements.
int64_t ChannelSumScratch(const ChannelShape& shape);

// Launchers: device memory, Internal on failure. dst [channels] = the sum of
// src over all values of each channel. scratch may be src if inner is 1.
absl::Status SumChannels(const KernelStream& to, const ChannelShape& shape,
                         const float* src, float* dst, float* scratch);
absl::Status SumChannels(const KernelStream& to, const ChannelShape& shape,
                         const double* src, double* dst, double* scratch);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_CHANNEL_SUM_KERNEL_H_
