// The primitives of the cpu backend, each in the file of its kind (conv2d.cc,
// dense.cc, ...). REQUIRES: descriptions and layouts that were checked.
#ifndef WORKER_BACKEND_CPU_CPU_PRIMITIVES_H_
#define WORKER_BACKEND_CPU_CPU_PRIMITIVES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/backend/cpu/dnnl_primitive.h"
#include "worker/backend/memory_layout.h"
#include "worker/backend/operation.h"
#include "worker/backend/primitive.h"

namespace muster {

using CpuPrimitive = absl::StatusOr<std::unique_ptr<Primitive>>;

// oneDNN's primitives; these may throw dnnl::error.
CpuPrimitive MakeCpuReorder(const CpuContext& context, const MemoryLayout& from,
                            const MemoryLayout& to);
CpuPrimitive MakeCpuConv2dForward(const CpuContext& context,
                                  const Conv2dDesc& desc);
CpuPrimitive MakeCpuConv2dBackwardData(const CpuContext& context,
                                       const Conv2dDesc& desc);
CpuPrimitive MakeCpuConv2dBackwardWeights(const CpuContext& context,
                                          const Conv2dDesc& desc);
CpuPrimitive MakeCpuDenseForward(const CpuContext& context,
                                 const DenseDesc& desc);
CpuPrimitive MakeCpuDenseBackwardData(const CpuContext& context,
                                      const DenseDesc& desc);
CpuPrimitive MakeCpuDenseBackwardWeights(const CpuContext& context,
                                         const DenseDesc& desc);
CpuPrimitive MakeCpuActivationForward(const CpuContext& context,
                                      const ActivationDesc& desc,
                                      const MemoryLayout& src);
CpuPrimitive MakeCpuActivationBackward(const CpuContext& context,
                                       const ActivationDesc& desc,
                                       const MemoryLayout& dst);
CpuPrimitive MakeCpuBatchNormForward(const CpuContext& context,
                                     const BatchNormDesc& desc,
                                     const MemoryLayout& src);
CpuPrimitive MakeCpuBatchNormBackward(const CpuContext& context,
                                      const BatchNormDesc& desc,
                                      const MemoryLayout& src);

// Max pools 2x2 with stride 2 in nChw8c and nChw16c are our own kernel; the
// others are oneDNN's, with ReLU beside it where desc says so.
CpuPrimitive MakeCpuPoolForward(const CpuContext& context, const PoolDesc& desc,
                                const MemoryLayout& src);
CpuPrimitive MakeCpuPoolBackward(const CpuContext& context,
                                 const PoolDesc& desc, const MemoryLayout& src);
// oneDNN's alone, whatever the window. REQUIRES: not relu_before.
CpuPrimitive MakeDnnlPoolForward(const CpuContext& context,
                                 const PoolDesc& desc, const MemoryLayout& src);
CpuPrimitive MakeDnnlPoolBackward(const CpuContext& context,
                                  const PoolDesc& desc,
                                  const MemoryLayout& src);

// Our own.
CpuPrimitive MakeCpuDropoutForward(const CpuContext& context,
                                   const DropoutDesc& desc);
CpuPrimitive MakeCpuDropoutBackward(const CpuContext& context,
                                    const DropoutDesc& desc);
CpuPrimitive MakeCpuAdd(const CpuContext& context, const AddDesc& desc,
                        const MemoryLayout& layout);
CpuPrimitive MakeCpuConcatForward(const ConcatDesc& desc,
                                  absl::Span<const MemoryLayout> srcs);
CpuPrimitive MakeCpuConcatBackward(const ConcatDesc& desc,
                                   absl::Span<const MemoryLayout> srcs);
CpuPrimitive MakeCpuSoftmaxCrossEntropy(const SoftmaxCrossEntropyDesc& desc);
CpuPrimitive MakeCpuL2Penalty(const L2PenaltyDesc& desc,
                              const MemoryLayout& weights);

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_CPU_PRIMITIVES_H_
