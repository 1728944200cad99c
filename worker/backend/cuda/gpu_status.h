// The libraries' codes as Status. `describe`, called only if there is an error,
// says what was being done: "conv2d forward of float32 [128, 1, 28, 28]".
// Nothing is allocated otherwise.
//   RETURN_IF_ERROR(CheckCuda(gpu, gpu.cuda.SetDevice(1),
//                             [] { return "use cuda:1"; }));
#ifndef WORKER_BACKEND_CUDA_GPU_STATUS_H_
#define WORKER_BACKEND_CUDA_GPU_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "worker/backend/cuda/gpu_functions.h"

namespace muster {

// "WHAT: CUDA says out of memory (2)". ResourceExhausted if the device has no
// memory, Unavailable if there is no device or driver, else Internal.
absl::Status CudaError(const GpuFunctions& gpu, cudaError_t error,
                       absl::string_view what);
absl::Status CudnnError(const GpuFunctions& gpu, cudnnStatus_t error,
                        absl::string_view what);
absl::Status CublasError(const GpuFunctions& gpu, cublasStatus_t error,
                         absl::string_view what);
absl::Status NcclError(const GpuFunctions& gpu, ncclResult_t error,
                       absl::string_view what);

template <typename Describe>
absl::Status CheckCuda(const GpuFunctions& gpu, cudaError_t error,
                       Describe describe) {
  if (error == cudaSuccess) return absl::OkStatus();
  return CudaError(gpu, error, describe());
}
template <typename Describe>
absl::Status CheckCudnn(const GpuFunctions& gpu, cudnnStatus_t error,
                        Describe describe) {
  if (error == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  return CudnnError(gpu, error, describe());
}
template <typename Describe>
absl::Status CheckCublas(const GpuFunctions& gpu, cublasStatus_t error,
                         Describe describe) {
  if (error == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return CublasError(gpu, error, describe());
}
template <typename Describe>
absl::Status CheckNccl(const GpuFunctions& gpu, ncclResult_t error,
                       Describe describe) {
  if (error == ncclSuccess) return absl::OkStatus();
  return NcclError(gpu, error, describe());
}

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_GPU_STATUS_H_
