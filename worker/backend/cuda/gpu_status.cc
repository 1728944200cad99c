#include "worker/backend/cuda/gpu_status.h"

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

absl::StatusCode CodeOf(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::StatusCode::kResourceExhausted;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemDriverMismatch:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status Describe(absl::StatusCode code, absl::string_view what,
                      absl::string_view library, const char* reason,
                      int error) {
  return absl::Status(code, absl::StrCat(what, ": ", library, " says ",
                                         reason == nullptr ? "nothing" : reason,
                                         " (", error, ")"));
}

}  // namespace

absl::Status CudaError(const GpuFunctions& gpu, cudaError_t error,
                       absl::string_view what) {
  return Describe(CodeOf(error), what, "CUDA", gpu.cuda.GetErrorString(error),
                  error);
}

absl::Status CudnnError(const GpuFunctions& gpu, cudnnStatus_t error,
                        absl::string_view what) {
  const absl::StatusCode code = error == CUDNN_STATUS_ALLOC_FAILED
                                    ? absl::StatusCode::kResourceExhausted
                                    : absl::StatusCode::kInternal;
  return Describe(code, what, "cuDNN", gpu.cudnn.GetErrorString(error), error);
}

absl::Status CublasError(const GpuFunctions& gpu, cublasStatus_t error,
                         absl::string_view what) {
  const absl::StatusCode code = error == CUBLAS_STATUS_ALLOC_FAILED
                                    ? absl::StatusCode::kResourceExhausted
                                    : absl::StatusCode::kInternal;
  return Describe(code, what, "cuBLAS", gpu.cublas.GetStatusString(error),
                  error);
}

absl::Status NcclError(const GpuFunctions& gpu, ncclResult_t error,
                       absl::string_view what) {
  return Describe(absl::StatusCode::kInternal, what, "NCCL",
                  gpu.nccl.GetErrorString(error), error);
}

}  // namespace muster
