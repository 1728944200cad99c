#ifndef WORKER_BACKEND_CPU_ONE_CHANNEL_CONV2D_H_
#define WORKER_BACKEND_CPU_ONE_CHANNEL_CONV2D_H_

#include "worker/backend/cpu/cpu_primitive.h"
#include "worker/backend/operation.h"

namespace muster {

// The gradient of a convolution's weights by one_channel_kernel.h. It writes
// canonical weights.

// Whether the kernel can do it, if diff_dst is in its blocks.
bool IsForOneChannel(const Conv2dDesc& desc);

// REQUIRES: IsForOneChannel(desc).
CpuPrimitive MakeOneChannelBackwardWeights(const CpuContext& context,
                                           const Conv2dDesc& desc);

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_ONE_CHANNEL_CONV2D_H_
