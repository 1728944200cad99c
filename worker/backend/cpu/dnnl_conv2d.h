#ifndef WORKER_BACKEND_CPU_DNNL_CONV2D_H_
#define WORKER_BACKEND_CPU_DNNL_CONV2D_H_

#include <cstdint>

#include "worker/backend/cpu/cpu_primitive.h"
#include "worker/backend/operation.h"

namespace muster {

// Convolutions by oneDNN, in layouts of its choice.

CpuPrimitive MakeDnnlConv2dForward(const CpuContext& context,
                                   const Conv2dDesc& desc);
CpuPrimitive MakeDnnlConv2dBackwardData(const CpuContext& context,
                                        const Conv2dDesc& desc);
CpuPrimitive MakeDnnlConv2dBackwardWeights(const CpuContext& context,
                                           const Conv2dDesc& desc);

// The block of channels in the layout that oneDNN would choose for dst, 0 if it
// has none. Our kernels use the same, so that the layers around need no
// reorder.
int64_t DnnlDstBlock(const CpuContext& context, const Conv2dDesc& desc);

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_DNNL_CONV2D_H_
