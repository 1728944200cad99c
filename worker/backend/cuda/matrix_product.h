#ifndef WORKER_BACKEND_CUDA_MATRIX_PRODUCT_H_
#define WORKER_BACKEND_CUDA_MATRIX_PRODUCT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/backend/cuda/cuda_device.h"
#include "worker/backend/cuda/gpu_object.h"

namespace muster {

// D = op(A) * op(B), then bias and ReLU, by cuBLASLt: matrices are column-major
// without gaps, so that a row-major [N, I] is an I x N here. One thread at a
// time.
class MatrixProduct {
 public:
  struct Options {
    int64_t rows = 1;  // of D
    int64_t columns = 1;
    int64_t depth = 1;  // terms of a sum
    // A lies as depth x rows, B as columns x depth.
    bool transpose_a = false;
    bool transpose_b = false;
    // A vector of `rows` is added to each column.
    bool has_bias = false;
  };

  // `what` says in messages what is being done. `device` outlives the product.
  // Errors: Unimplemented if cuBLASLt has no algorithm; Internal.
  static absl::StatusOr<std::unique_ptr<MatrixProduct>> Create(
      CudaDevice* device, const Options& options, const std::string& what);

  MatrixProduct(const MatrixProduct&) = delete;
  MatrixProduct& operator=(const MatrixProduct&) = delete;

  int64_t workspace_bytes() const { return workspace_bytes_; }

  // Puts the product into the device's stream. A and B are float32 or, with
  // that precision, bf16; the others float32; aligned to 64 bytes, `workspace`
  // to 256. `bias` is not read without has_bias.
  absl::Status Run(const void* a, const void* b, const float* bias, float* d,
                   void* workspace);

 private:
  MatrixProduct(CudaDevice* device, const Options& options, std::string what);

  absl::Status Check(cublasStatus_t error) const;
  absl::Status CreateOperation();
  absl::Status CreateLayouts();
  absl::Status ChooseAlgorithm();
  absl::Status CreatePreference(CublasPreference* preference) const;
  template <typename T>
  absl::Status Set(cublasLtMatmulDescAttributes_t attribute, const T& value);

  CudaDevice* const device_;
  const Options options_;
  const std::string what_;
  CublasMatmul operation_;
  CublasLayout a_;
  CublasLayout b_;
  CublasLayout d_;
  cublasLtMatmulAlgo_t algorithm_ = {};
  int64_t workspace_bytes_ = 0;
};

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_MATRIX_PRODUCT_H_
