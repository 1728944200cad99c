#include "tests/worker/backend/cuda/fake_cudnn.h"

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr cudnnStatus_t kOk = CUDNN_STATUS_SUCCESS;
constexpr cudnnStatus_t kBadParameter = CUDNN_STATUS_BAD_PARAM;

// The checks that SetTensor4dDescriptor and SetFilter4dDescriptor share.
cudnnStatus_t SetPacked(FakeConvolution::Tensor* tensor, cudnnDataType_t type,
                        cudnnTensorFormat_t format,
                        std::array<int64_t, 4> sizes) {
  if (tensor == nullptr) return kBadParameter;
  for (const int64_t size : sizes) {
    if (size <= 0) return kBadParameter;
  }
  // cuDNN has more of both; this fake has not.
  if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_BFLOAT16) {
    return kBadParameter;
  }
  if (format != CUDNN_TENSOR_NCHW && format != CUDNN_TENSOR_NHWC) {
    return kBadParameter;
  }
  *tensor = {type, format, sizes};
  return kOk;
}

void Count(size_t alive, const char* what, std::string* leaks) {
  if (alive == 0) return;
  absl::StrAppend(leaks, leaks->empty() ? "" : ", ", alive, " ", what,
                  alive == 1 ? "" : "s");
}

}  // namespace

template <typename Object, typename State>
std::function<cudnnStatus_t(Object*)> FakeCudnn::Making(
    FakeObjects<Object, State>* objects) {
  return [this, objects](Object* made) {
    if (made == nullptr) return kBadParameter;
    const absl::MutexLock lock(&mu_);
    *made = objects->Make();
    return kOk;
  };
}

template <typename Object, typename State>
std::function<cudnnStatus_t(Object)> FakeCudnn::Destroying(
    FakeObjects<Object, State>* objects) {
  return [this, objects](Object object) {
    const absl::MutexLock lock(&mu_);
    return objects->Destroy(object) ? kOk : kBadParameter;
  };
}

CudnnFunctions FakeCudnn::functions() {
  CudnnFunctions functions;
  functions.GetVersion = [] { return size_t{CUDNN_VERSION}; };
  functions.GetErrorString = [](cudnnStatus_t status) {
    switch (status) {
      case CUDNN_STATUS_SUCCESS:
        return "CUDNN_STATUS_SUCCESS";
      case CUDNN_STATUS_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
      case CUDNN_STATUS_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
      default:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    }
  };
  AddObjects(&functions);
  AddSetters(&functions);
  AddConvolutions(&functions);
  return functions;
}

void FakeCudnn::AddObjects(CudnnFunctions* functions) {
  functions->Create = Bind(&FakeCudnn::Create);
  functions->Destroy = Destroying(&handles_);
  functions->CreateTensorDescriptor = Making(&tensors_);
  functions->DestroyTensorDescriptor = Destroying(&tensors_);
  functions->CreateFilterDescriptor = Making(&filters_);
  functions->DestroyFilterDescriptor = Destroying(&filters_);
  functions->CreateConvolutionDescriptor = Making(&convolutions_);
  functions->DestroyConvolutionDescriptor = Destroying(&convolutions_);
  functions->CreateActivationDescriptor = Making(&activations_);
  functions->DestroyActivationDescriptor = Destroying(&activations_);
}

void FakeCudnn::AddSetters(CudnnFunctions* functions) {
  functions->SetStream = Bind(&FakeCudnn::SetStream);
  functions->SetTensor4dDescriptor = Bind(&FakeCudnn::SetTensor);
  functions->SetFilter4dDescriptor = Bind(&FakeCudnn::SetFilter);
  functions->SetConvolution2dDescriptor = Bind(&FakeCudnn::SetConvolution);
  functions->SetConvolutionGroupCount = Bind(&FakeCudnn::SetGroups);
  functions->SetConvolutionMathType = Bind(&FakeCudnn::SetMath);
  functions->SetActivationDescriptor = Bind(&FakeCudnn::SetActivation);
}

std::string FakeCudnn::Leaks() const {
  const absl::MutexLock lock(&mu_);
  std::string leaks;
  Count(handles_.alive(), "handle", &leaks);
  Count(tensors_.alive(), "tensor descriptor", &leaks);
  Count(filters_.alive(), "filter descriptor", &leaks);
  Count(convolutions_.alive(), "convolution descriptor", &leaks);
  Count(activations_.alive(), "activation descriptor", &leaks);
  return leaks;
}

FakeCudnn::Handle* FakeCudnn::FindHandle(cudnnHandle_t handle) {
  Handle* const found = handles_.Find(handle);
  const bool is_here = found != nullptr && found->device == current_device_();
  return is_here ? found : nullptr;
}

cudnnStatus_t FakeCudnn::Create(cudnnHandle_t* handle) {
  if (handle == nullptr) return kBadParameter;
  const absl::MutexLock lock(&mu_);
  *handle = handles_.Make({current_device_(), nullptr});
  return kOk;
}

cudnnStatus_t FakeCudnn::SetStream(cudnnHandle_t handle, cudaStream_t stream) {
  const absl::MutexLock lock(&mu_);
  Handle* const found = FindHandle(handle);
  if (found == nullptr) return kBadParameter;
  found->stream = stream;
  return kOk;
}

cudnnStatus_t FakeCudnn::SetTensor(cudnnTensorDescriptor_t tensor,
                                   cudnnTensorFormat_t format,
                                   cudnnDataType_t type, int n, int c, int h,
                                   int w) {
  // Nobody asks this about filters.
  constexpr double kMostElements = std::numeric_limits<int32_t>::max();
  if (1.0 * n * c * h * w > kMostElements) return CUDNN_STATUS_NOT_SUPPORTED;
  const absl::MutexLock lock(&mu_);
  return SetPacked(tensors_.Find(tensor), type, format, {n, c, h, w});
}

cudnnStatus_t FakeCudnn::SetFilter(cudnnFilterDescriptor_t filter,
                                   cudnnDataType_t type,
                                   cudnnTensorFormat_t format, int k, int c,
                                   int h, int w) {
  const absl::MutexLock lock(&mu_);
  return SetPacked(filters_.Find(filter), type, format, {k, c, h, w});
}

cudnnStatus_t FakeCudnn::SetConvolution(
    cudnnConvolutionDescriptor_t convolution, int pad_h, int pad_w,
    int stride_h, int stride_w, int dilation_h, int dilation_w,
    cudnnConvolutionMode_t mode, cudnnDataType_t compute_type) {
  const absl::MutexLock lock(&mu_);
  Convolution* const found = convolutions_.Find(convolution);
  if (found == nullptr) return kBadParameter;
  if (pad_h < 0 || pad_w < 0 || stride_h <= 0 || stride_w <= 0) {
    return kBadParameter;
  }
  if (dilation_h <= 0 || dilation_w <= 0) return kBadParameter;
  // cuDNN has these; this fake has not.
  if (dilation_h != 1 || dilation_w != 1 || mode != CUDNN_CROSS_CORRELATION ||
      compute_type != CUDNN_DATA_FLOAT) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  *found = {true, {pad_h, pad_w, stride_h, stride_w}, CUDNN_DEFAULT_MATH};
  return kOk;
}

cudnnStatus_t FakeCudnn::SetGroups(cudnnConvolutionDescriptor_t convolution,
                                   int groups) {
  const absl::MutexLock lock(&mu_);
  Convolution* const found = convolutions_.Find(convolution);
  if (found == nullptr || groups <= 0) return kBadParameter;
  found->groups = groups;
  return kOk;
}

cudnnStatus_t FakeCudnn::SetMath(cudnnConvolutionDescriptor_t convolution,
                                 cudnnMathType_t math) {
  const absl::MutexLock lock(&mu_);
  Convolution* const found = convolutions_.Find(convolution);
  if (found == nullptr || math < CUDNN_DEFAULT_MATH || math > CUDNN_FMA_MATH) {
    return kBadParameter;
  }
  found->math = math;
  return kOk;
}

cudnnStatus_t FakeCudnn::SetActivation(cudnnActivationDescriptor_t activation,
                                       cudnnActivationMode_t mode,
                                       cudnnNanPropagation_t, double) {
  const absl::MutexLock lock(&mu_);
  Activation* const found = activations_.Find(activation);
  if (found == nullptr || mode < CUDNN_ACTIVATION_SIGMOID ||
      mode > CUDNN_ACTIVATION_SWISH) {
    return kBadParameter;
  }
  *found = {true, mode};
  return kOk;
}

}  // namespace muster
