// The primitives of cuDNN and cuBLASLt. `device` outlives them. REQUIRES:
// descriptions that were checked. Errors: Unimplemented if the library has no
// algorithm for it; Internal with what it says; all with the shapes.
#ifndef WORKER_BACKEND_CUDA_CUDA_PRODUCTS_H_
#define WORKER_BACKEND_CUDA_CUDA_PRODUCTS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/backend/cuda/cuda_device.h"
#include "worker/backend/operation.h"
#include "worker/backend/primitive.h"

namespace muster {

using CudaProduct = absl::StatusOr<std::unique_ptr<Primitive>>;

// conv2d.cc, conv2d_backward.cc. Activations and weights are channels-last.
CudaProduct MakeCudaConv2dForward(CudaDevice* device, const Conv2dDesc& desc);
CudaProduct MakeCudaConv2dBackwardData(CudaDevice* device,
                                       const Conv2dDesc& desc);
CudaProduct MakeCudaConv2dBackwardWeights(CudaDevice* device,
                                          const Conv2dDesc& desc);

// dense.cc. All is row-major.
CudaProduct MakeCudaDenseForward(CudaDevice* device, const DenseDesc& desc);
CudaProduct MakeCudaDenseBackwardData(CudaDevice* device,
                                      const DenseDesc& desc);
CudaProduct MakeCudaDenseBackwardWeights(CudaDevice* device,
                                         const DenseDesc& desc);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_CUDA_PRODUCTS_H_
