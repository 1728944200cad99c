#ifndef WORKER_BACKEND_CUDA_CUDA_PRIMITIVE_H_
#define WORKER_BACKEND_CUDA_CUDA_PRIMITIVE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "worker/backend/cuda/cuda_device.h"
#include "worker/backend/cuda/gpu_status.h"
#include "worker/backend/primitive.h"
#include "worker/backend/primitive_table.h"

namespace muster {

using MadePrimitive = absl::StatusOr<std::unique_ptr<Primitive>>;

// Each is registered by the file of its kind (activation.cc, add.cc, ...), with
// a device that outlives it. Those of cuDNN (convolutions: activations nhwc,
// weights krsc) and cuBLASLt (dense: row-major) choose their layouts. The
// others are kernels of our own: add and L2 penalty take any layout, dropout
// and softmax cross-entropy row-major; the rest follow row-major or nhwc, and
// state row-major otherwise. Errors of cuDNN's and cuBLASLt's: Unimplemented if
// the library has no algorithm; Internal with what it says; all with the
// shapes.
using CudaPrimitives = PrimitiveTable<CudaDevice*>;

// A primitive on one CUDA device: Execute puts its work into kCompute and
// returns; operands are device memory.
class CudaPrimitive : public Primitive {
 public:
  // The choice, for --log_device_placement: "cuDNN implicit_precomp_gemm,
  // TF32".
  std::string description() const override { return choice_; }

 protected:
  // `what` says in messages what is being done, with the shapes: "conv2d
  // forward of float32 [128, 1, 28, 28] with weights [32, 1, 5, 5]".
  // `choice`: description(). `device` outlives the primitive.
  CudaPrimitive(CudaDevice* device, std::string what, std::string choice = "")
      : device_(device), what_(std::move(what)), choice_(std::move(choice)) {}

  CudaDevice& device() const { return *device_; }
  const GpuFunctions& gpu() const { return device_->gpu(); }
  KernelStream kernels() const { return device_->kernels(); }
  const std::string& what() const { return what_; }

  absl::Status Check(cudaError_t error) const {
    return CheckCuda(gpu(), error, [this] { return what_; });
  }
  absl::Status Check(cudnnStatus_t error) const {
    return CheckCudnn(gpu(), error, [this] { return what_; });
  }
  absl::Status Check(cublasStatus_t error) const {
    return CheckCublas(gpu(), error, [this] { return what_; });
  }
  // Names this primitive in what a launcher of a kernel returned.
  absl::Status Check(const absl::Status& launched) const {
    if (launched.ok()) return launched;
    return absl::Status(launched.code(),
                        absl::StrCat(what_, ": ", launched.message()));
  }

 private:
  CudaDevice* const device_;
  const std::string what_;
  const std::string choice_;
};

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_CUDA_PRIMITIVE_H_
