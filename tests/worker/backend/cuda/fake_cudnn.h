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
// supported, with a huge workspace, not deterministic. A handle is of the
// device that was current when it was made, and is refused while another one
// is. Thread-safe.
class FakeCudnn {
 public:
  // Puts work into a stream.
  using Enqueue =
      std::function<cudaError_t(cudaStream_t, std::function<void()>)>;

  // `current_device`: of the calling thread.
  explicit FakeCudnn(
      Enqueue enqueue, std::function<int()> current_device = [] { return 0; })
      : enqueue_(std::move(enqueue)),
        current_device_(std::move(current_device)) {}

  FakeCudnn(const FakeCudnn&) = delete;
  FakeCudnn& operator=(const FakeCudnn&) = delete;

  // Outlived by this.
  CudnnFunctions functions();

  // All that was made and not destroyed: "2 tensor descriptors"; empty:
  // nothing.
  std::string Leaks() const;

 private:
  struct Handle {
    int device = 0;
    cudaStream_t stream = nullptr;
  };
  // Its sizes are zero until it is set.
  using Tensor = FakeConvolution::Tensor;
  struct Convolution {
    bool is_set = false;
    FakeConvolution::Window window;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
    int groups = 1;
  };
  struct Activation {
    bool is_set = false;
    cudnnActivationMode_t mode = CUDNN_ACTIVATION_RELU;
  };
  // The tensors of a convolution that fit each other.
  struct Described {
    cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM;
    cudaStream_t stream = nullptr;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
    FakeConvolution convolution;
  };
  struct Epilogue {
    Tensor bias;
    bool relu = false;
  };

  template <typename R, typename... Arguments>
  std::function<R(Arguments...)> Bind(R (FakeCudnn::*method)(Arguments...)) {
    return [this, method](Arguments... arguments) {
      return (this->*method)(arguments...);
    };
  }

  // Functions that make and destroy what `objects` holds.
  template <typename Object, typename State>
  std::function<cudnnStatus_t(Object*)> Making(
      FakeObjects<Object, State>* objects);
  template <typename Object, typename State>
  std::function<cudnnStatus_t(Object)> Destroying(
      FakeObjects<Object, State>* objects);
  void AddObjects(CudnnFunctions* functions);
  void AddSetters(CudnnFunctions* functions);
  void AddConvolutions(CudnnFunctions* functions);
  void AddWorkspaceSizes(CudnnFunctions* functions);

  // Null if there is none, or if it is another device's.
  Handle* FindHandle(cudnnHandle_t handle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The functions of cuDNN, by their names. fake_cudnn.cc:
  cudnnStatus_t Create(cudnnHandle_t* handle);
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
  cudnnStatus_t SetGroups(cudnnConvolutionDescriptor_t convolution, int groups);
  cudnnStatus_t SetMath(cudnnConvolutionDescriptor_t convolution,
                        cudnnMathType_t math);
  cudnnStatus_t SetActivation(cudnnActivationDescriptor_t activation,
                              cudnnActivationMode_t mode,
                              cudnnNanPropagation_t nan, double coefficient);

  // fake_cudnn_convolutions.cc:
  template <typename Perf>
  cudnnStatus_t List(const Described& described, int wanted, int* found,
                     Perf* perfs);
  template <typename Algorithm>
  cudnnStatus_t WorkspaceSize(const Described& described, Algorithm algorithm,
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

  Described Describe(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                     cudnnFilterDescriptor_t w,
                     cudnnConvolutionDescriptor_t convolution,
                     cudnnTensorDescriptor_t y);
  // The end of a convolution in the same call.
  cudnnStatus_t Describe(const Described& described,
                         cudnnConvolutionFwdAlgo_t algorithm,
                         cudnnTensorDescriptor_t z,
                         cudnnTensorDescriptor_t bias,
                         cudnnActivationDescriptor_t activation,
                         Epilogue* epilogue);
  // Spoils the workspace and works, in the stream.
  cudnnStatus_t Put(cudaStream_t stream, void* workspace,
                    size_t workspace_bytes, std::function<void()> work);

  // Constant after construction.
  const Enqueue enqueue_;
  const std::function<int()> current_device_;

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
