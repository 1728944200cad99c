#ifndef WORKER_BACKEND_CUDA_CUDA_DEVICE_H_
#define WORKER_BACKEND_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/backend/cuda/cuda_streams.h"
#include "worker/backend/cuda/gpu_functions.h"
#include "worker/backend/cuda/kernel_launch.h"

namespace muster {

// How products are computed. Parameters, activations and gradients are float32
// in memory with any of them.
struct CudaPrecision {
  // Tensor cores round the factors of float32 products to TF32 (10 bits of
  // mantissa), as PyTorch's and TensorFlow's convolutions do.
  bool tf32 = true;
  // The factors are rounded to bf16 instead; sums stay float32.
  bool bf16 = false;

  // The name of the factors' type.
  const char* name() const { return bf16 ? "bf16" : tf32 ? "TF32" : "float32"; }
};

// A CUDA device that is open: its streams, and cuDNN and cuBLASLt bound to
// kCompute. The primitives of one backend share it. One thread at a time, after
// streams().MakeCurrent().
class CudaDevice {
 public:
  struct Options {
    // As CUDA counts them: after CUDA_VISIBLE_DEVICES.
    int ordinal = 0;
    // "cuda:1".
    std::string name;
    CudaPrecision precision;
    // Device memory that may be used; 0: all that is free.
    int64_t memory_limit_bytes = 0;
  };

  // `gpu` outlives the device. Errors: those of CudaStreams::Create; Internal
  // if cuDNN or cuBLAS does not start.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Open(
      const GpuFunctions* gpu, const Options& options);
  ~CudaDevice();

  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const GpuFunctions& gpu() const { return *gpu_; }
  const std::string& name() const { return options_.name; }
  int ordinal() const { return options_.ordinal; }
  const CudaPrecision& precision() const { return options_.precision; }
  CudaStreams& streams() { return *streams_; }
  cudnnHandle_t cudnn() const { return cudnn_; }
  cublasLtHandle_t cublas() const { return cublas_; }
  // kCompute, for cuBLASLt's calls and for kernels.
  cudaStream_t stream() const { return streams_->compute(); }
  KernelStream kernels() const { return {gpu_, stream()}; }

 private:
  CudaDevice(const GpuFunctions* gpu, const Options& options)
      : gpu_(gpu), options_(options) {}

  const GpuFunctions* const gpu_;
  const Options options_;
  std::unique_ptr<CudaStreams> streams_;
  cudnnHandle_t cudnn_ = nullptr;
  cublasLtHandle_t cublas_ = nullptr;
};

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_CUDA_DEVICE_H_
