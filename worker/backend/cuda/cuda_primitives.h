// The primitives of the cuda backend, each in the file of its kind
// (activation.cc, add.cc, ...). `device` outlives them. REQUIRES: descriptions
// and layouts that were checked.
#ifndef WORKER_BACKEND_CUDA_CUDA_PRIMITIVES_H_
#define WORKER_BACKEND_CUDA_CUDA_PRIMITIVES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/optimizer/update_rule.h"
#include "worker/backend/cuda/cuda_device.h"
#include "worker/backend/device_rule.h"
#include "worker/backend/memory_layout.h"
#include "worker/backend/operation.h"
#include "worker/backend/primitive.h"

namespace muster {

using MadePrimitive = absl::StatusOr<std::unique_ptr<Primitive>>;

// Kernels of our own. Those with a layout follow it where it is row-major or
// nhwc, and state row-major otherwise.

// Between row-major, nhwc and krsc.
MadePrimitive MakeCudaReorder(CudaDevice* device, const MemoryLayout& from,
                              const MemoryLayout& to);
MadePrimitive MakeCudaActivationForward(CudaDevice* device,
                                        const ActivationDesc& desc,
                                        const MemoryLayout& src);
MadePrimitive MakeCudaActivationBackward(CudaDevice* device,
                                         const ActivationDesc& desc,
                                         const MemoryLayout& dst);
MadePrimitive MakeCudaPoolForward(CudaDevice* device, const PoolDesc& desc,
                                  const MemoryLayout& src);
MadePrimitive MakeCudaPoolBackward(CudaDevice* device, const PoolDesc& desc,
                                   const MemoryLayout& src);
// Row-major.
MadePrimitive MakeCudaDropoutForward(CudaDevice* device,
                                     const DropoutDesc& desc);
MadePrimitive MakeCudaDropoutBackward(CudaDevice* device,
                                      const DropoutDesc& desc);
MadePrimitive MakeCudaBatchNormForward(CudaDevice* device,
                                       const BatchNormDesc& desc,
                                       const MemoryLayout& src);
MadePrimitive MakeCudaBatchNormBackward(CudaDevice* device,
                                        const BatchNormDesc& desc,
                                        const MemoryLayout& src);
// Any layout.
MadePrimitive MakeCudaAdd(CudaDevice* device, const AddDesc& desc,
                          const MemoryLayout& layout);
// nhwc if all sources can be.
MadePrimitive MakeCudaConcatForward(CudaDevice* device, const ConcatDesc& desc,
                                    absl::Span<const MemoryLayout> srcs);
MadePrimitive MakeCudaConcatBackward(CudaDevice* device, const ConcatDesc& desc,
                                     absl::Span<const MemoryLayout> srcs);
MadePrimitive MakeCudaSoftmaxCrossEntropy(CudaDevice* device,
                                          const SoftmaxCrossEntropyDesc& desc);
// Any layout.
MadePrimitive MakeCudaL2Penalty(CudaDevice* device, const L2PenaltyDesc& desc,
                                const MemoryLayout& weights);

// cuDNN's: activations nhwc, weights krsc. Errors of these and of cuBLASLt's:
// Unimplemented if the library has no algorithm; Internal with what it says;
// all with the shapes.
MadePrimitive MakeCudaConv2dForward(CudaDevice* device, const Conv2dDesc& desc);
MadePrimitive MakeCudaConv2dBackwardData(CudaDevice* device,
                                         const Conv2dDesc& desc);
MadePrimitive MakeCudaConv2dBackwardWeights(CudaDevice* device,
                                            const Conv2dDesc& desc);

// cuBLASLt's: row-major.
MadePrimitive MakeCudaDenseForward(CudaDevice* device, const DenseDesc& desc);
MadePrimitive MakeCudaDenseBackwardData(CudaDevice* device,
                                        const DenseDesc& desc);
MadePrimitive MakeCudaDenseBackwardWeights(CudaDevice* device,
                                           const DenseDesc& desc);

// Kernels of our own for a rule of common/optimizer, which outlives it. Errors:
// Unimplemented if there is none.
absl::StatusOr<std::unique_ptr<DeviceRule>> MakeCudaRule(
    CudaDevice* device, const UpdateRule* rule);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_CUDA_PRIMITIVES_H_
