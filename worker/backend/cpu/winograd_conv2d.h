#ifndef WORKER_BACKEND_CPU_WINOGRAD_CONV2D_H_
#define WORKER_BACKEND_CPU_WINOGRAD_CONV2D_H_

#include <cstdint>

#include "worker/backend/cpu/cpu_primitive.h"
#include "worker/backend/operation.h"

namespace muster {

// Convolutions by winograd5x5_kernel.h. They read and write canonical weights:
// no reorder of these is needed.

// Whether the kernel can do this convolution, and by a fixed table of shapes is
// about as fast as oneDNN or faster. Nothing is timed: the bits of a training
// must not depend on a clock.
bool IsForWinograd(const Conv2dDesc& desc);

// `block` of channels in src, dst and their gradients: 8 or 16.
// REQUIRES: the window is 5x5, the stride 1, the padding smaller than the
// window, one group, channels in multiples of 16.
CpuPrimitive MakeWinogradForward(const CpuContext& context,
                                 const Conv2dDesc& desc, int64_t block);
CpuPrimitive MakeWinogradBackwardData(const CpuContext& context,
                                      const Conv2dDesc& desc, int64_t block);
CpuPrimitive MakeWinogradBackwardWeights(const CpuContext& context,
                                         const Conv2dDesc& desc, int64_t block);

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_WINOGRAD_CONV2D_H_
