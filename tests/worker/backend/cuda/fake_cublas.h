#ifndef TESTS_WORKER_BACKEND_CUDA_FAKE_CUBLAS_H_
#define TESTS_WORKER_BACKEND_CUDA_FAKE_CUBLAS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/worker/backend/cuda/fake_objects.h"
#include "worker/backend/cuda/gpu_functions.h"

namespace muster {

// cuBLASLt 13's products of matrices on the host: column-major, factors of
// float32 or bf16, results and sums of float32, with bias and ReLU after them.
// Refuses with cuBLAS's codes what its documentation forbids. Factors of
// float32 are rounded to TF32 if the compute type is FAST_TF32.
//
// The first algorithm that it offers, if there may be several, cannot be used;
// the others want all the alignment that was promised, and a workspace that is
// aligned to 256 bytes. A handle is of the device that was current when it was
// made, and is refused while another one is. Thread-safe.
class FakeCublas {
 public:
  // Puts work into a stream.
  using Enqueue =
      std::function<cudaError_t(cudaStream_t, std::function<void()>)>;

  // `current_device`: of the calling thread.
  explicit FakeCublas(
      Enqueue enqueue, std::function<int()> current_device = [] { return 0; })
      : enqueue_(std::move(enqueue)),
        current_device_(std::move(current_device)) {}

  FakeCublas(const FakeCublas&) = delete;
  FakeCublas& operator=(const FakeCublas&) = delete;

  // Outlived by this.
  CublasFunctions functions();

  // All that was made and not destroyed: "2 matrix layouts"; empty: nothing.
  std::string Leaks() const;

 private:
  struct Handle {
    int device = 0;
  };
  struct Operation {
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    cudaDataType_t scale = CUDA_R_32F;
    int32_t transpose_a = CUBLAS_OP_N;
    int32_t transpose_b = CUBLAS_OP_N;
    uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void* bias = nullptr;
  };
  struct Layout {
    cudaDataType_t type = CUDA_R_32F;
    int64_t rows = 0;
    int64_t columns = 0;
    int64_t leading = 0;
  };
  struct Preference {
    uint64_t workspace_bytes = 0;
    // Those of A, B, C and D.
    uint32_t alignments[4] = {256, 256, 256, 256};
    uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  };
  // A product whose parts fit each other.
  struct Product {
    Operation operation;
    Layout a;
    Layout b;
    Layout d;
    int64_t depth = 0;

    // D = alpha * op(A) * op(B) + beta * C and what follows; the terms of a sum
    // from the first to the last, or else from the last.
    bool from_last = false;
    void Compute(const void* a_memory, const void* b_memory, float alpha,
                 const float* c_memory, float beta, float* d_memory) const;
  };
  // The content of an algorithm's opaque words.
  struct Algorithm {
    uint64_t magic;
    // That of the product that it is for.
    uint64_t fingerprint;
    uint64_t workspace_bytes;
    uint32_t alignments[4];
    // It adds the parts of a sum in dst, in the order in which they come.
    bool in_place;
  };

  template <typename Result, typename... Arguments>
  std::function<Result(Arguments...)> Bind(
      Result (FakeCublas::*method)(Arguments...)) {
    return [this, method](Arguments... arguments) {
      return (this->*method)(arguments...);
    };
  }

  static uint64_t FingerprintOf(const Product& product);
  static bool IsSupported(const Operation& how, const Layout& a,
                          const Layout& b, const Layout& c, const Layout& d);
  // A, B, C and D.
  static cublasStatus_t CheckOperands(
      const Algorithm& chosen, const std::array<const void*, 4>& operands);

  // The functions of cuBLASLt, by their names.
  cublasStatus_t Create(cublasLtHandle_t* handle);
  cublasStatus_t Destroy(cublasLtHandle_t handle);
  cublasStatus_t DescCreate(cublasLtMatmulDesc_t* operation,
                            cublasComputeType_t compute, cudaDataType_t scale);
  cublasStatus_t DescDestroy(cublasLtMatmulDesc_t operation);
  cublasStatus_t DescSetAttribute(cublasLtMatmulDesc_t operation,
                                  cublasLtMatmulDescAttributes_t attribute,
                                  const void* value, size_t bytes);
  cublasStatus_t LayoutCreate(cublasLtMatrixLayout_t* layout,
                              cudaDataType_t type, uint64_t rows,
                              uint64_t columns, int64_t leading);
  cublasStatus_t LayoutDestroy(cublasLtMatrixLayout_t layout);
  cublasStatus_t PreferenceCreate(cublasLtMatmulPreference_t* preference);
  cublasStatus_t PreferenceDestroy(cublasLtMatmulPreference_t preference);
  cublasStatus_t PreferenceSetAttribute(
      cublasLtMatmulPreference_t preference,
      cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
      size_t bytes);
  cublasStatus_t AlgoGetHeuristic(
      cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
      cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
      cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
      cublasLtMatmulPreference_t preference, int wanted,
      cublasLtMatmulHeuristicResult_t* results, int* found);
  cublasStatus_t Matmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                        const void* alpha, const void* a,
                        cublasLtMatrixLayout_t a_layout, const void* b,
                        cublasLtMatrixLayout_t b_layout, const void* beta,
                        const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                        cublasLtMatrixLayout_t d_layout,
                        const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                        size_t workspace_bytes, cudaStream_t stream);

  cublasStatus_t Describe(cublasLtHandle_t handle,
                          cublasLtMatmulDesc_t operation,
                          cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                          cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                          Product* product);

  // How often something was added in place.
  std::atomic<int> in_place_{0};
  // Constant after construction.
  const Enqueue enqueue_;
  const std::function<int()> current_device_;

  mutable absl::Mutex mu_;
  FakeObjects<cublasLtHandle_t, Handle> handles_ ABSL_GUARDED_BY(mu_);
  FakeObjects<cublasLtMatmulDesc_t, Operation> operations_ ABSL_GUARDED_BY(mu_);
  FakeObjects<cublasLtMatrixLayout_t, Layout> layouts_ ABSL_GUARDED_BY(mu_);
  FakeObjects<cublasLtMatmulPreference_t, Preference> preferences_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_FAKE_CUBLAS_H_
