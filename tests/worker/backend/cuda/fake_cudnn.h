#ifndef TESTS_WORKER_BACKEND_CUDA_FAKE_CUDNN_H_
#define TESTS_WORKER_BACKEND_CUDA_FAKE_CUDNN_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/worker/backend/cuda/fake_convolution.h"
#include "tests/worker/backend/cuda/fake_objects.h"
#include "worker/backend/cuda/gpu_functions.h"

namespace muster {

// cuDNN 9's convolutions on the host: packed tensors of float32 or bf16 in NCHW
// or NHWC, sums in float32. Refuses with cuDNN's codes what its documentation
// forbids. With float32 tensors the factors are rounded to TF32 unless the math
// type is FMA, as on Ampere and later.
//
// Its lists of algorithms begin with some that must not be taken: not
// supported, with a huge workspace, not deterministic. Thread-safe.
class FakeCudnn {
 public:
  // Puts work into a stream.
  using Enqueue =
      std::function<cudaError_t(cudaStream_t, std::function<void()>)>;

  explicit FakeCudnn(Enqueue enqueue) : enqueue_(std::move(enqueue)) {}

  FakeCudnn(const FakeCudnn&) = delete;
  FakeCudnn& operator=(const FakeCudnn&) = delete;

  // Outlived by this.
  CudnnFunctions functions();

  // What was made and not destroyed: "2 tensor descriptors"; empty: nothing.
  std::string Leaks() const;

 private:
  struct Handle {
    cudaStream_t stream = nullptr;
  };
  // Its sizes are zero until it is set.
  using Tensor = FakeConvolution::Tensor;
  struct Convolution {
    bool is_set = false;
    FakeConvolution::Window window;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  };
  struct Activation {
    bool is_set = false;
    cudnnActivationMode_t mode = CUDNN_ACTIVATION_RELU;
    bool keeps_nan = false;
  };
  // What a call puts into a stream; nothing if it is refused.
  struct Work {
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    cudaStream_t stream = nullptr;
    std::function<void()> run;
  };
  struct Scales {
    const void* alpha;
    const void* beta;
  };
  struct Workspace {
    void* memory;
    size_t size_bytes;
  };
  template <typename Algorithm>
  struct Choice;

  template <typename R, typename... Arguments>
  std::function<R(Arguments...)> Bind(R (FakeCudnn::*method)(Arguments...)) {
    return [this, method](Arguments... arguments) {
      return (this->*method)(arguments...);
    };
  }

  template <typename Descriptors, typename Handle>
  cudnnStatus_t Make(Descriptors* objects, Handle* handle);
  template <typename Descriptors, typename Handle>
  cudnnStatus_t Destroy(Descriptors* objects, Handle handle);
  void AddObjects(CudnnFunctions* functions);
  void AddConvolutions(CudnnFunctions* functions);

  // The functions of cuDNN, by their names. fake_cudnn.cc:
  cudnnStatus_t SetStream(cudnnHandle_t handle, cudaStream_t stream);
  cudnnStatus_t SetTensor(cudnnTensorDescriptor_t tensor,
                          cudnnTensorFormat_t format, cudnnDataType_t type,
                          int n, int c, int h, int w);
  cudnnStatus_t SetFilter(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                          cudnnTensorFormat_t format, int k, int c, int h,
                          int w);
  cudnnStatus_t SetConvolution(cudnnConvolutionDescriptor_t convolution,
                               int pad_h, int pad_w, int stride_h, int stride_w,
                               int dilation_h, int dilation_w,
                               cudnnConvolutionMode_t mode,
                               cudnnDataType_t compute_type);
  cudnnStatus_t SetMath(cudnnConvolutionDescriptor_t convolution,
                        cudnnMathType_t math);
  cudnnStatus_t SetActivation(cudnnActivationDescriptor_t activation,
                              cudnnActivationMode_t mode,
                              cudnnNanPropagation_t nan, double coefficient);

  // fake_cudnn_convolutions.cc:
  template <typename Algorithm, typename Perf>
  cudnnStatus_t List(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                     cudnnFilterDescriptor_t w,
                     cudnnConvolutionDescriptor_t convolution,
                     cudnnTensorDescriptor_t y, int wanted, int* found,
                     Perf* perfs);
  template <typename Algorithm>
  cudnnStatus_t WorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                              cudnnFilterDescriptor_t w,
                              cudnnConvolutionDescriptor_t convolution,
                              cudnnTensorDescriptor_t y, Algorithm algorithm,
                              size_t* size_bytes);
  cudnnStatus_t Forward(cudnnHandle_t handle, const void* alpha,
                        cudnnTensorDescriptor_t x_desc, const void* x,
                        cudnnFilterDescriptor_t w_desc, const void* w,
                        cudnnConvolutionDescriptor_t convolution,
                        cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                        size_t workspace_bytes, const void* beta,
                        cudnnTensorDescriptor_t y_desc, void* y);
  cudnnStatus_t BiasActivationForward(
      cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_desc,
      const void* x, cudnnFilterDescriptor_t w_desc, const void* w,
      cudnnConvolutionDescriptor_t convolution,
      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
      size_t workspace_bytes, const void* alpha_z,
      cudnnTensorDescriptor_t z_desc, const void* z,
      cudnnTensorDescriptor_t bias_desc, const void* bias,
      cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t y_desc,
      void* y);
  cudnnStatus_t BackwardData(cudnnHandle_t handle, const void* alpha,
                             cudnnFilterDescriptor_t w_desc, const void* w,
                             cudnnTensorDescriptor_t dy_desc, const void* dy,
                             cudnnConvolutionDescriptor_t convolution,
                             cudnnConvolutionBwdDataAlgo_t algorithm,
                             void* workspace, size_t workspace_bytes,
                             const void* beta, cudnnTensorDescriptor_t dx_desc,
                             void* dx);
  cudnnStatus_t BackwardFilter(cudnnHandle_t handle, const void* alpha,
                               cudnnTensorDescriptor_t x_desc, const void* x,
                               cudnnTensorDescriptor_t dy_desc, const void* dy,
                               cudnnConvolutionDescriptor_t convolution,
                               cudnnConvolutionBwdFilterAlgo_t algorithm,
                               void* workspace, size_t workspace_bytes,
                               const void* beta,
                               cudnnFilterDescriptor_t dw_desc, void* dw);
  cudnnStatus_t AddTensor(cudnnHandle_t handle, const void* alpha,
                          cudnnTensorDescriptor_t a_desc, const void* a,
                          const void* beta, cudnnTensorDescriptor_t c_desc,
                          void* c);

  // The tensors of a convolution, checked against each other. `math` is the
  // descriptor's if it is not null.
  cudnnStatus_t Describe(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                         cudnnFilterDescriptor_t w,
                         cudnnConvolutionDescriptor_t convolution,
                         cudnnTensorDescriptor_t y, FakeConvolution* described,
                         cudnnMathType_t* math = nullptr);
  template <typename Algorithm>
  cudnnStatus_t Check(Algorithm algorithm, const Workspace& workspace) const;
  // Puts `work` into the stream, after it has spoilt the workspace.
  cudnnStatus_t Put(cudnnHandle_t handle, const Workspace& workspace,
                    std::function<void()> work);

  // Constant after construction.
  const Enqueue enqueue_;

  mutable absl::Mutex mu_;
  FakeObjects<cudnnHandle_t, Handle> handles_ ABSL_GUARDED_BY(mu_);
  FakeObjects<cudnnTensorDescriptor_t, Tensor> tensors_ ABSL_GUARDED_BY(mu_);
  FakeObjects<cudnnFilterDescriptor_t, Tensor> filters_ ABSL_GUARDED_BY(mu_);
  FakeObjects<cudnnConvolutionDescriptor_t, Convolution> convolutions_
      ABSL_GUARDED_BY(mu_);
  FakeObjects<cudnnActivationDescriptor_t, Activation> activations_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_FAKE_CUDNN_H_
