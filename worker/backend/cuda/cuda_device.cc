#include "worker/backend/cuda/cuda_device.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/gpu_status.h"

namespace muster {

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Open(
    const GpuFunctions* gpu, const Options& options) {
  auto device = absl::WrapUnique(new CudaDevice(gpu, options));
  CudaStreams::Options streams;
  streams.ordinal = options.ordinal;
  streams.name = options.name;
  streams.memory_limit_bytes = options.memory_limit_bytes;
  ASSIGN_OR_RETURN(device->streams_, CudaStreams::Create(gpu, streams));
  const auto starting = [&] {
    return absl::StrCat("start cuDNN and cuBLAS on ", options.name);
  };
  RETURN_IF_ERROR(
      CheckCudnn(*gpu, gpu->cudnn.Create(&device->cudnn_), starting));
  RETURN_IF_ERROR(CheckCudnn(
      *gpu, gpu->cudnn.SetStream(device->cudnn_, device->stream()), starting));
  RETURN_IF_ERROR(
      CheckCublas(*gpu, gpu->cublas.Create(&device->cublas_), starting));
  return device;
}

// A failure here has been one before, or harms nobody any more.
CudaDevice::~CudaDevice() {
  if (streams_ != nullptr) streams_->MakeCurrent().IgnoreError();
  if (cublas_ != nullptr) gpu_->cublas.Destroy(cublas_);
  if (cudnn_ != nullptr) gpu_->cudnn.Destroy(cudnn_);
}

}  // namespace muster
