// For kernels that sum by channel: which values a thread takes.
#ifndef WORKER_BACKEND_CUDA_CHANNEL_PARTS_CUH_
#define WORKER_BACKEND_CUDA_CHANNEL_PARTS_CUH_

#include <cstdint>

#include "worker/backend/cuda/channel_sum_kernel.h"

namespace muster {

// One of the parts of one channel: every parts-th of its values.
struct ChannelPart {
  int64_t channel;
  int64_t part;
};

// The part that is number `index` of all of all channels. Neighbours take
// values that are neighbours in memory.
__device__ inline ChannelPart PartAt(const ChannelShape& shape, int64_t parts,
                                     int64_t index) {
  if (shape.inner == 1) {
    return {index % shape.channels, index / shape.channels};
  }
  return {index / parts, index % parts};
}

// Calls visit(index) for each value of the part, in order.
template <typename Visit>
__device__ void ForEachOfPart(const ChannelShape& shape, int64_t parts,
                              const ChannelPart& at, Visit visit) {
  const int64_t outer_step = parts / shape.inner;
  const int64_t inner_step = parts % shape.inner;
  int64_t outer = at.part / shape.inner;
  int64_t inner = at.part % shape.inner;
  while (outer < shape.outer) {
    visit((outer * shape.channels + at.channel) * shape.inner + inner);
    outer += outer_step;
    inner += inner_step;
    if (inner >= shape.inner) {
      inner -= shape.inner;
      ++outer;
    }
  }
}

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_CHANNEL_PARTS_CUH_
