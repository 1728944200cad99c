// The convolutions of FakeCudnn, and what its lists of algorithms say.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/worker/backend/cuda/fake_cudnn.h"

namespace muster {
namespace {

constexpr cudnnStatus_t kOk = CUDNN_STATUS_SUCCESS;
constexpr cudnnStatus_t kBadParameter = CUDNN_STATUS_BAD_PARAM;
constexpr cudnnStatus_t kNotSupported = CUDNN_STATUS_NOT_SUPPORTED;

// Not a multiple of what memory is aligned to.
constexpr size_t kSomeBytes = 1000;
constexpr size_t kHugeBytes = size_t{1} << 40;
constexpr int kSpoilt = 0xFF;

template <typename Algorithm>
struct Offer {
  Algorithm algorithm;
  cudnnStatus_t status;
  size_t workspace_bytes;
  cudnnDeterminism_t determinism;
};

const std::vector<Offer<cudnnConvolutionFwdAlgo_t>>& Offers(
    cudnnConvolutionFwdAlgo_t) {
  static const auto& offers =
      *new std::vector<Offer<cudnnConvolutionFwdAlgo_t>>{
          {CUDNN_CONVOLUTION_FWD_ALGO_FFT, kNotSupported, 0,
           CUDNN_DETERMINISTIC},
          {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, kOk, kHugeBytes,
           CUDNN_DETERMINISTIC},
          {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, kOk, kSomeBytes,
           CUDNN_DETERMINISTIC},
          {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, kOk, 0,
           CUDNN_DETERMINISTIC}};
  return offers;
}

const std::vector<Offer<cudnnConvolutionBwdDataAlgo_t>>& Offers(
    cudnnConvolutionBwdDataAlgo_t) {
  static const auto& offers =
      *new std::vector<Offer<cudnnConvolutionBwdDataAlgo_t>>{
          {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, kNotSupported, 0,
           CUDNN_DETERMINISTIC},
          {CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, kOk, 0, CUDNN_NON_DETERMINISTIC},
          {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, kOk, kHugeBytes,
           CUDNN_DETERMINISTIC},
          {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, kOk, kSomeBytes,
           CUDNN_DETERMINISTIC}};
  return offers;
}

const std::vector<Offer<cudnnConvolutionBwdFilterAlgo_t>>& Offers(
    cudnnConvolutionBwdFilterAlgo_t) {
  static const auto& offers =
      *new std::vector<Offer<cudnnConvolutionBwdFilterAlgo_t>>{
          {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, kNotSupported, 0,
           CUDNN_DETERMINISTIC},
          {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, kOk, kSomeBytes,
           CUDNN_NON_DETERMINISTIC},
          {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, kOk, kHugeBytes,
           CUDNN_DETERMINISTIC},
          {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, kOk, kSomeBytes,
           CUDNN_DETERMINISTIC}};
  return offers;
}

// Null if the operation has no such algorithm.
template <typename Algorithm>
const Offer<Algorithm>* OfferOf(Algorithm algorithm) {
  for (const Offer<Algorithm>& offer : Offers(algorithm)) {
    if (offer.algorithm == algorithm) return &offer;
  }
  return nullptr;
}

template <typename Algorithm>
cudnnStatus_t CheckAlgorithm(Algorithm algorithm, const void* workspace,
                             size_t workspace_bytes) {
  const Offer<Algorithm>* const offer = OfferOf(algorithm);
  if (offer == nullptr || offer->status != kOk) return kNotSupported;
  if (workspace_bytes < offer->workspace_bytes) return kBadParameter;
  if (offer->workspace_bytes > 0 && workspace == nullptr) return kBadParameter;
  return kOk;
}

float ValueOf(const void* scale) { return *static_cast<const float*>(scale); }

bool AllSet(std::initializer_list<const void*> pointers) {
  return std::find(pointers.begin(), pointers.end(), nullptr) == pointers.end();
}

bool IsBiasFor(const FakeConvolution::Tensor& bias,
               const FakeConvolution::Tensor& y) {
  return bias.type == y.type &&
         bias.sizes == std::array<int64_t, 4>{1, y.sizes[1], 1, 1};
}

bool IsSame(const FakeConvolution::Tensor& a,
            const FakeConvolution::Tensor& b) {
  return a.type == b.type && a.format == b.format && a.sizes == b.sizes;
}

// Adds bias[c] to each of `values`, which are in the order N, C, H, W.
void AddBias(const std::vector<float>& bias, int64_t area,
             std::vector<float>* values) {
  const int64_t channels = static_cast<int64_t>(bias.size());
  for (size_t i = 0; i < values->size(); ++i) {
    (*values)[i] += bias[i / area % channels];
  }
}

// 0 of NaN.
void Relu(std::vector<float>* values) {
  for (float& value : *values) {
    if (!(value > 0)) value = 0;
  }
}

}  // namespace

void FakeCudnn::AddConvolutions(CudnnFunctions* functions) {
  functions->GetConvolutionForwardAlgorithm_v7 =
      [this](cudnnHandle_t handle, cudnnTensorDescriptor_t x,
             cudnnFilterDescriptor_t w,
             cudnnConvolutionDescriptor_t convolution,
             cudnnTensorDescriptor_t y, int wanted, int* found,
             cudnnConvolutionFwdAlgoPerf_t* perfs) {
        return List(Describe(handle, x, w, convolution, y), wanted, found,
                    perfs);
      };
  functions->GetConvolutionBackwardDataAlgorithm_v7 =
      [this](cudnnHandle_t handle, cudnnFilterDescriptor_t w,
             cudnnTensorDescriptor_t dy,
             cudnnConvolutionDescriptor_t convolution,
             cudnnTensorDescriptor_t dx, int wanted, int* found,
             cudnnConvolutionBwdDataAlgoPerf_t* perfs) {
        return List(Describe(handle, dx, w, convolution, dy), wanted, found,
                    perfs);
      };
  functions->GetConvolutionBackwardFilterAlgorithm_v7 =
      [this](cudnnHandle_t handle, cudnnTensorDescriptor_t x,
             cudnnTensorDescriptor_t dy,
             cudnnConvolutionDescriptor_t convolution,
             cudnnFilterDescriptor_t dw, int wanted, int* found,
             cudnnConvolutionBwdFilterAlgoPerf_t* perfs) {
        return List(Describe(handle, x, dw, convolution, dy), wanted, found,
                    perfs);
      };
  AddWorkspaceSizes(functions);
  functions->ConvolutionForward = Bind(&FakeCudnn::Forward);
  functions->ConvolutionBiasActivationForward =
      Bind(&FakeCudnn::BiasActivationForward);
  functions->ConvolutionBackwardData = Bind(&FakeCudnn::BackwardData);
  functions->ConvolutionBackwardFilter = Bind(&FakeCudnn::BackwardFilter);
}

void FakeCudnn::AddWorkspaceSizes(CudnnFunctions* functions) {
  functions->GetConvolutionForwardWorkspaceSize =
      [this](cudnnHandle_t handle, cudnnTensorDescriptor_t x,
             cudnnFilterDescriptor_t w,
             cudnnConvolutionDescriptor_t convolution,
             cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algorithm,
             size_t* bytes) {
        return WorkspaceSize(Describe(handle, x, w, convolution, y), algorithm,
                             bytes);
      };
  functions->GetConvolutionBackwardDataWorkspaceSize =
      [this](cudnnHandle_t handle, cudnnFilterDescriptor_t w,
             cudnnTensorDescriptor_t dy,
             cudnnConvolutionDescriptor_t convolution,
             cudnnTensorDescriptor_t dx,
             cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
        return WorkspaceSize(Describe(handle, dx, w, convolution, dy),
                             algorithm, bytes);
      };
  functions->GetConvolutionBackwardFilterWorkspaceSize =
      [this](cudnnHandle_t handle, cudnnTensorDescriptor_t x,
             cudnnTensorDescriptor_t dy,
             cudnnConvolutionDescriptor_t convolution,
             cudnnFilterDescriptor_t dw,
             cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
        return WorkspaceSize(Describe(handle, x, dw, convolution, dy),
                             algorithm, bytes);
      };
}

FakeCudnn::Described FakeCudnn::Describe(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
    cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y) {
  const absl::MutexLock lock(&mu_);
  Described result;
  const Handle* const of = FindHandle(handle);
  const Tensor* const x_tensor = tensors_.Find(x);
  const Tensor* const w_tensor = filters_.Find(w);
  const Tensor* const y_tensor = tensors_.Find(y);
  const Convolution* const how = convolutions_.Find(convolution);
  if (!AllSet({of, x_tensor, w_tensor, y_tensor, how})) return result;
  const Tensor& xs = *x_tensor;
  const Tensor& ws = *w_tensor;
  const Tensor& ys = *y_tensor;
  if (!how->is_set || xs.elements() == 0 || ws.elements() == 0) return result;
  if (xs.type != ws.type || xs.type != ys.type) return result;
  FakeConvolution& c = result.convolution;
  c = {xs,
       ws,
       ys,
       how->window,
       xs.type == CUDNN_DATA_FLOAT && how->math != CUDNN_FMA_MATH,
       how->groups};
  if (xs.sizes[1] != ws.sizes[1] * c.groups || ws.sizes[0] % c.groups != 0 ||
      ys.sizes != c.YSizes()) {
    return result;
  }
  // A filter in NHWC wants both others so. For those in NCHW cuDNN has more
  // combinations than this fake.
  const bool is_one_format = xs.format == ws.format && ys.format == ws.format;
  result.status = is_one_format ? kOk : kNotSupported;
  result.stream = of->stream;
  result.math = how->math;
  return result;
}

template <typename Perf>
cudnnStatus_t FakeCudnn::List(const Described& described, int wanted,
                              int* found, Perf* perfs) {
  if (described.status != kOk) return described.status;
  if (wanted < 1 || found == nullptr || perfs == nullptr) return kBadParameter;
  const auto& offers = Offers(decltype(perfs->algo){});
  *found = std::min(wanted, static_cast<int>(offers.size()));
  for (int i = 0; i < *found; ++i) {
    perfs[i] = {};
    perfs[i].algo = offers[i].algorithm;
    perfs[i].status = offers[i].status;
    perfs[i].time = -1;
    perfs[i].memory = offers[i].workspace_bytes;
    perfs[i].determinism = offers[i].determinism;
    perfs[i].mathType = described.math;
  }
  return kOk;
}

template <typename Algorithm>
cudnnStatus_t FakeCudnn::WorkspaceSize(const Described& described,
                                       Algorithm algorithm,
                                       size_t* size_bytes) {
  if (described.status != kOk) return described.status;
  if (size_bytes == nullptr) return kBadParameter;
  const auto* const offer = OfferOf(algorithm);
  if (offer == nullptr || offer->status != kOk) return kNotSupported;
  *size_bytes = offer->workspace_bytes;
  return kOk;
}

cudnnStatus_t FakeCudnn::Put(cudaStream_t stream, void* workspace,
                             size_t workspace_bytes,
                             std::function<void()> work) {
  const cudaError_t error =
      enqueue_(stream, [workspace, workspace_bytes, work = std::move(work)] {
        if (workspace_bytes > 0)
          std::memset(workspace, kSpoilt, workspace_bytes);
        work();
      });
  return error == cudaSuccess ? kOk : CUDNN_STATUS_EXECUTION_FAILED_CUDART;
}

cudnnStatus_t FakeCudnn::Forward(cudnnHandle_t handle, const void* alpha,
                                 cudnnTensorDescriptor_t x_desc, const void* x,
                                 cudnnFilterDescriptor_t w_desc, const void* w,
                                 cudnnConvolutionDescriptor_t convolution,
                                 cudnnConvolutionFwdAlgo_t algorithm,
                                 void* workspace, size_t workspace_bytes,
                                 const void* beta,
                                 cudnnTensorDescriptor_t y_desc, void* y) {
  const Described described =
      Describe(handle, x_desc, w_desc, convolution, y_desc);
  if (described.status != kOk) return described.status;
  if (!AllSet({alpha, x, w, beta, y}) || x == y) return kBadParameter;
  const cudnnStatus_t fits =
      CheckAlgorithm(algorithm, workspace, workspace_bytes);
  if (fits != kOk) return fits;
  return Put(
      described.stream, workspace, workspace_bytes,
      [c = described.convolution, x, w, y, alpha = ValueOf(alpha),
       beta = ValueOf(beta)] { c.y.Store(c.Forward(x, w), alpha, beta, y); });
}

cudnnStatus_t FakeCudnn::BiasActivationForward(
    cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_desc,
    const void* x, cudnnFilterDescriptor_t w_desc, const void* w,
    cudnnConvolutionDescriptor_t convolution,
    cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
    size_t workspace_bytes, const void* alpha_z, cudnnTensorDescriptor_t z_desc,
    const void* z, cudnnTensorDescriptor_t bias_desc, const void* bias,
    cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t y_desc,
    void* y) {
  const Described described =
      Describe(handle, x_desc, w_desc, convolution, y_desc);
  if (described.status != kOk) return described.status;
  if (!AllSet({alpha, x, w, alpha_z, z, bias, y}) || x == y) {
    return kBadParameter;
  }
  cudnnStatus_t fits = CheckAlgorithm(algorithm, workspace, workspace_bytes);
  if (fits != kOk) return fits;
  Epilogue epilogue;
  fits =
      Describe(described, algorithm, z_desc, bias_desc, activation, &epilogue);
  if (fits != kOk) return fits;
  return Put(described.stream, workspace, workspace_bytes,
             [c = described.convolution, epilogue, x, w, z, bias, y,
              alpha = ValueOf(alpha), alpha_z = ValueOf(alpha_z)] {
               std::vector<float> values = c.Forward(x, w);
               for (float& value : values) value *= alpha;
               if (alpha_z != 0) {
                 const std::vector<float> added = c.y.Load(z);
                 for (size_t i = 0; i < values.size(); ++i) {
                   values[i] += alpha_z * added[i];
                 }
               }
               AddBias(epilogue.bias.Load(bias), c.y.sizes[2] * c.y.sizes[3],
                       &values);
               if (epilogue.relu) Relu(&values);
               c.y.Store(values, 1, 0, y);
             });
}

cudnnStatus_t FakeCudnn::Describe(const Described& described,
                                  cudnnConvolutionFwdAlgo_t algorithm,
                                  cudnnTensorDescriptor_t z,
                                  cudnnTensorDescriptor_t bias,
                                  cudnnActivationDescriptor_t activation,
                                  Epilogue* epilogue) {
  const absl::MutexLock lock(&mu_);
  const Tensor* const z_tensor = tensors_.Find(z);
  const Tensor* const bias_tensor = tensors_.Find(bias);
  const Activation* const ends = activations_.Find(activation);
  if (!AllSet({z_tensor, bias_tensor, ends}) || !ends->is_set) {
    return kBadParameter;
  }
  const Tensor& y = described.convolution.y;
  if (!IsSame(*z_tensor, y) || !IsBiasFor(*bias_tensor, y)) {
    return kBadParameter;
  }
  // CUDNN_PROPAGATE_NAN is taken, and changes nothing, as on a card.
  if (ends->mode == CUDNN_ACTIVATION_IDENTITY) {
    // The one algorithm that may end without an activation.
    if (algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) {
      return kNotSupported;
    }
  } else if (ends->mode != CUDNN_ACTIVATION_RELU) {
    return kNotSupported;
  }
  *epilogue = {*bias_tensor, ends->mode == CUDNN_ACTIVATION_RELU};
  return kOk;
}

cudnnStatus_t FakeCudnn::BackwardData(
    cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t w_desc,
    const void* w, cudnnTensorDescriptor_t dy_desc, const void* dy,
    cudnnConvolutionDescriptor_t convolution,
    cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
    size_t workspace_bytes, const void* beta, cudnnTensorDescriptor_t dx_desc,
    void* dx) {
  const Described described =
      Describe(handle, dx_desc, w_desc, convolution, dy_desc);
  if (described.status != kOk) return described.status;
  if (!AllSet({alpha, w, dy, beta, dx}) || dy == dx) return kBadParameter;
  const cudnnStatus_t fits =
      CheckAlgorithm(algorithm, workspace, workspace_bytes);
  if (fits != kOk) return fits;
  return Put(described.stream, workspace, workspace_bytes,
             [c = described.convolution, w, dy, dx, alpha = ValueOf(alpha),
              beta = ValueOf(beta)] {
               c.x.Store(c.BackwardData(w, dy), alpha, beta, dx);
             });
}

cudnnStatus_t FakeCudnn::BackwardFilter(
    cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_desc,
    const void* x, cudnnTensorDescriptor_t dy_desc, const void* dy,
    cudnnConvolutionDescriptor_t convolution,
    cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
    size_t workspace_bytes, const void* beta, cudnnFilterDescriptor_t dw_desc,
    void* dw) {
  const Described described =
      Describe(handle, x_desc, dw_desc, convolution, dy_desc);
  if (described.status != kOk) return described.status;
  if (!AllSet({alpha, x, dy, beta, dw})) return kBadParameter;
  const cudnnStatus_t fits =
      CheckAlgorithm(algorithm, workspace, workspace_bytes);
  if (fits != kOk) return fits;
  return Put(described.stream, workspace, workspace_bytes,
             [c = described.convolution, x, dy, dw, alpha = ValueOf(alpha),
              beta = ValueOf(beta)] {
               c.w.Store(c.BackwardFilter(x, dy), alpha, beta, dw);
             });
}

}  // namespace muster
