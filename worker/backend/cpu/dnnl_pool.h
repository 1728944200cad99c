#ifndef WORKER_BACKEND_CPU_DNNL_POOL_H_
#define WORKER_BACKEND_CPU_DNNL_POOL_H_

#include "worker/backend/cpu/cpu_primitive.h"

namespace muster {

// Pools of oneDNN alone, whatever the window. REQUIRES: not relu_before.
CpuPrimitive MakeDnnlPoolForward(const CpuContext& context,
                                 const PoolDesc& desc, const MemoryLayout& src);
CpuPrimitive MakeDnnlPoolBackward(const CpuContext& context,
                                  const PoolDesc& desc,
                                  const MemoryLayout& src);

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_DNNL_POOL_H_
