#ifndef WORKER_BACKEND_CUDA_GPU_OBJECT_H_
#define WORKER_BACKEND_CUDA_GPU_OBJECT_H_

#include <functional>
#include <utility>

#include "worker/backend/cuda/gpu_functions.h"

namespace muster {

// Owns one object of cuDNN or cuBLASLt that functions of the table make and
// destroy:
//   CudnnTensor tensor(gpu.cudnn.DestroyTensorDescriptor);
//   RETURN_IF_ERROR(Check(gpu.cudnn.CreateTensorDescriptor(tensor.put())));
template <typename Handle, typename Code>
class GpuObject {
 public:
  using Destroy = std::function<Code(Handle)>;

  // Owns nothing yet. `destroy` outlives this.
  explicit GpuObject(const Destroy& destroy) : destroy_(&destroy) {}
  ~GpuObject() {
    if (handle_ != nullptr) (*destroy_)(handle_);
  }

  GpuObject(GpuObject&& other) noexcept
      : destroy_(other.destroy_),
        handle_(std::exchange(other.handle_, nullptr)) {}
  GpuObject& operator=(GpuObject&& other) noexcept {
    std::swap(destroy_, other.destroy_);
    std::swap(handle_, other.handle_);
    return *this;
  }

  Handle get() const { return handle_; }
  // Where the function that makes it puts it. REQUIRES: owns nothing.
  Handle* put() { return &handle_; }

 private:
  const Destroy* destroy_;
  Handle handle_ = nullptr;
};

using CudnnTensor = GpuObject<cudnnTensorDescriptor_t, cudnnStatus_t>;
using CudnnFilter = GpuObject<cudnnFilterDescriptor_t, cudnnStatus_t>;
using CudnnConvolution = GpuObject<cudnnConvolutionDescriptor_t, cudnnStatus_t>;
using CudnnActivation = GpuObject<cudnnActivationDescriptor_t, cudnnStatus_t>;
using CublasMatmul = GpuObject<cublasLtMatmulDesc_t, cublasStatus_t>;
using CublasLayout = GpuObject<cublasLtMatrixLayout_t, cublasStatus_t>;
using CublasPreference = GpuObject<cublasLtMatmulPreference_t, cublasStatus_t>;

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_GPU_OBJECT_H_
