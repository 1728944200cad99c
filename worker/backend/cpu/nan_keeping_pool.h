#ifndef WORKER_BACKEND_CPU_NAN_KEEPING_POOL_H_
#define WORKER_BACKEND_CPU_NAN_KEEPING_POOL_H_

#include <memory>

#include "worker/backend/cpu/cpu_primitive.h"

namespace muster {

// `pool`, a max pool of oneDNN, which passes NaN over, and then NaN in dst
// where a window has one. Without one among the values this costs a look at
// each, at the speed of memory. Errors: those of DnnlDescOf.
CpuPrimitive KeepingNan(int threads, const PoolDesc& desc,
                        std::unique_ptr<Primitive> pool);

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_NAN_KEEPING_POOL_H_
