#include "worker/backend/cuda/conv2d_problem.h"

#include <cstdint>
#include <limits>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/gpu_status.h"

namespace muster {
namespace {

// cuDNN's sizes are ints, and so are its offsets.
constexpr int64_t kMostElements = std::numeric_limits<int32_t>::max();

// Whether pad_top above and below, pad_left on both sides, give the same dst:
// where a position is depends on these alone.
bool FitsEvenPads(const Conv2dDesc& desc, const WindowDesc& even) {
  const WindowDesc& window = desc.window;
  return even.Validate(desc.height, desc.width).ok() &&
         even.dst_h(desc.height) == window.dst_h(desc.height) &&
         even.dst_w(desc.width) == window.dst_w(desc.width);
}

Conv2dDesc WithEvenPads(Conv2dDesc desc) {
  WindowDesc even = desc.window;
  even.pad_bottom = even.pad_top;
  even.pad_right = even.pad_left;
  if (!FitsEvenPads(desc, even)) {
    desc.height += desc.window.pad_top + desc.window.pad_bottom;
    desc.width += desc.window.pad_left + desc.window.pad_right;
    even.pad_top = even.pad_bottom = even.pad_left = even.pad_right = 0;
  }
  desc.window = even;
  return desc;
}

int Int(int64_t size) { return static_cast<int>(size); }

}  // namespace

std::string DescribeConv2d(const char* direction, const Conv2dDesc& desc) {
  return absl::StrCat("conv2d ", direction, " of float32 ",
                      desc.src_shape().ToString(), " with weights ",
                      desc.weights_shape().ToString());
}

Conv2dProblem::Conv2dProblem(const CudaDevice* device, const Conv2dDesc& desc,
                             std::string what)
    : device_(device),
      desc_(WithEvenPads(desc)),
      what_(std::move(what)),
      src_(device->gpu().cudnn.DestroyTensorDescriptor),
      weights_(device->gpu().cudnn.DestroyFilterDescriptor),
      dst_(device->gpu().cudnn.DestroyTensorDescriptor),
      convolution_(device->gpu().cudnn.DestroyConvolutionDescriptor) {}

absl::StatusOr<std::unique_ptr<Conv2dProblem>> Conv2dProblem::Create(
    const CudaDevice* device, const Conv2dDesc& desc, const std::string& what) {
  auto problem = absl::WrapUnique(new Conv2dProblem(device, desc, what));
  RETURN_IF_ERROR(problem->CheckSizes());
  RETURN_IF_ERROR(problem->CreateTensors());
  RETURN_IF_ERROR(problem->CreateConvolution());
  return problem;
}

absl::Status Conv2dProblem::Check(cudnnStatus_t error) const {
  return CheckCudnn(gpu(), error, [this] { return what_; });
}

absl::Status Conv2dProblem::CheckSizes() const {
  for (const Shape& shape :
       {desc_.src_shape(), desc_.weights_shape(), desc_.dst_shape()}) {
    if (shape.num_elements() > kMostElements) {
      return absl::UnimplementedError(absl::StrCat(
          what_, ": cuDNN takes tensors of at most ", kMostElements,
          " elements, found ", shape.ToString(), "; take a smaller batch"));
    }
  }
  return absl::OkStatus();
}

cudnnDataType_t Conv2dProblem::type() const {
  return precision().bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

absl::Status Conv2dProblem::Describe(const Shape& shape,
                                     CudnnTensor* tensor) const {
  const CudnnFunctions& cudnn = gpu().cudnn;
  RETURN_IF_ERROR(Check(cudnn.CreateTensorDescriptor(tensor->put())));
  return Check(cudnn.SetTensor4dDescriptor(
      tensor->get(), CUDNN_TENSOR_NHWC, type(), Int(shape.dim(0)),
      Int(shape.dim(1)), Int(shape.dim(2)), Int(shape.dim(3))));
}

absl::Status Conv2dProblem::Describe(CudnnTensor* bias) const {
  return Describe(Shape{1, desc_.dst_channels, 1, 1}, bias);
}

absl::Status Conv2dProblem::CreateTensors() {
  const CudnnFunctions& cudnn = gpu().cudnn;
  RETURN_IF_ERROR(Describe(desc_.src_shape(), &src_));
  RETURN_IF_ERROR(Describe(desc_.dst_shape(), &dst_));
  RETURN_IF_ERROR(Check(cudnn.CreateFilterDescriptor(weights_.put())));
  const Shape shape = desc_.weights_shape();
  return Check(cudnn.SetFilter4dDescriptor(
      weights_.get(), type(), CUDNN_TENSOR_NHWC, Int(shape.dim(0)),
      Int(shape.dim(1)), Int(shape.dim(2)), Int(shape.dim(3))));
}

absl::Status Conv2dProblem::CreateConvolution() {
  const CudnnFunctions& cudnn = gpu().cudnn;
  const WindowDesc& w = desc_.window;
  constexpr int kDilation = 1;
  RETURN_IF_ERROR(Check(cudnn.CreateConvolutionDescriptor(convolution_.put())));
  RETURN_IF_ERROR(Check(cudnn.SetConvolution2dDescriptor(
      convolution_.get(), Int(w.pad_top), Int(w.pad_left), Int(w.stride_h),
      Int(w.stride_w), kDilation, kDilation, CUDNN_CROSS_CORRELATION,
      CUDNN_DATA_FLOAT)));
  RETURN_IF_ERROR(Check(
      cudnn.SetConvolutionGroupCount(convolution_.get(), Int(desc_.groups))));
  // With float32 tensors the default allows TF32; with bf16 tensor cores must
  // be allowed.
  return UseMath(precision().bf16 ? CUDNN_TENSOR_OP_MATH : CUDNN_DEFAULT_MATH);
}

absl::Status Conv2dProblem::UseMath(cudnnMathType_t offered) const {
  const bool is_exact = !precision().tf32 && !precision().bf16;
  return Check(gpu().cudnn.SetConvolutionMathType(
      convolution_.get(), is_exact ? CUDNN_FMA_MATH : offered));
}

}  // namespace muster
