#ifndef WORKER_BACKEND_CUDA_CONV2D_PROBLEM_H_
#define WORKER_BACKEND_CUDA_CONV2D_PROBLEM_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/backend/cuda/cuda_device.h"
#include "worker/backend/cuda/gpu_object.h"
#include "worker/backend/operation.h"

namespace muster {

// "conv2d forward of float32 [128, 1, 28, 28] with weights [32, 1, 5, 5]".
std::string DescribeConv2d(const char* direction, const Conv2dDesc& desc);

// A convolution as cuDNN's descriptors say it: channels last, which tensor
// cores want (with one channel that is row-major, too), and the same pads on
// opposite sides, since cuDNN knows no others. The same for forward and
// backward.
//
// These are cuDNN's calls of before its graphs: deprecated in cuDNN 9, whole in
// it, and simple enough for every rule of theirs to be checked on a fake.
class Conv2dProblem {
 public:
  // `what` says in messages what is being done. `device` outlives this.
  // Errors: Unimplemented if a tensor is too large for cuDNN; Internal.
  static absl::StatusOr<std::unique_ptr<Conv2dProblem>> Create(
      const CudaDevice* device, const Conv2dDesc& desc,
      const std::string& what);

  Conv2dProblem(const Conv2dProblem&) = delete;
  Conv2dProblem& operator=(const Conv2dProblem&) = delete;

  // The convolution for cuDNN: if it cannot pad src so, its src has the zeros
  // of all pads in it and is larger.
  const Conv2dDesc& desc() const { return desc_; }
  const CudaPrecision& precision() const { return device_->precision(); }
  const GpuFunctions& gpu() const { return device_->gpu(); }
  cudnnHandle_t handle() const { return device_->cudnn(); }
  const std::string& what() const { return what_; }

  cudnnTensorDescriptor_t src() const { return src_.get(); }
  cudnnFilterDescriptor_t weights() const { return weights_.get(); }
  cudnnTensorDescriptor_t dst() const { return dst_.get(); }
  cudnnConvolutionDescriptor_t convolution() const {
    return convolution_.get();
  }

  // Lets the convolution compute as an algorithm of cuDNN's list wants it, but
  // never with TF32 where that is off.
  absl::Status UseMath(cudnnMathType_t offered) const;
  // A tensor [1, dst_channels, 1, 1] of the type of the others.
  absl::Status Describe(CudnnTensor* bias) const;
  absl::Status Check(cudnnStatus_t error) const;

 private:
  Conv2dProblem(const CudaDevice* device, const Conv2dDesc& desc,
                std::string what);

  absl::Status CheckSizes() const;
  absl::Status CreateTensors();
  absl::Status CreateConvolution();
  absl::Status Describe(const Shape& shape, CudnnTensor* tensor) const;
  cudnnDataType_t type() const;

  const CudaDevice* const device_;
  const Conv2dDesc desc_;
  const std::string what_;
  CudnnTensor src_;
  CudnnFilter weights_;
  CudnnTensor dst_;
  CudnnConvolution convolution_;
};

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_CONV2D_PROBLEM_H_
