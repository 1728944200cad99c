#include "tests/worker/backend/cuda/fake_cublas.h"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr cublasStatus_t kOk = CUBLAS_STATUS_SUCCESS;
constexpr size_t kWorkspace = 1000;

// D [2 x 1] = A [2 x 3] * B [3 x 1] of float32.
class FakeCublasTest : public testing::Test {
 protected:
  FakeCublasTest() {
    cublas_.Create(&handle_);
    cublas_.MatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublas_.MatrixLayoutCreate(&a_, CUDA_R_32F, 2, 3, 2);
    cublas_.MatrixLayoutCreate(&b_, CUDA_R_32F, 3, 1, 3);
    cublas_.MatrixLayoutCreate(&d_, CUDA_R_32F, 2, 1, 2);
    cublas_.MatmulPreferenceCreate(&preference_);
    const uint64_t workspace = 2 * kWorkspace;
    cublas_.MatmulPreferenceSetAttribute(
        preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
        sizeof(workspace));
    AllowReductions(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  }

  void AllowReductions(uint32_t schemes) {
    cublas_.MatmulPreferenceSetAttribute(
        preference_, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
        sizeof(schemes));
  }

  template <typename T>
  cublasStatus_t Set(cublasLtMatmulDescAttributes_t attribute, T value) {
    return cublas_.MatmulDescSetAttribute(operation_, attribute, &value,
                                          sizeof(value));
  }

  // Takes the one algorithm that can be used.
  cublasStatus_t Choose(int wanted_found = 2) {
    cublasLtMatmulHeuristicResult_t results[4];
    int found = 0;
    const cublasStatus_t status = cublas_.MatmulAlgoGetHeuristic(
        handle_, operation_, a_, b_, d_, d_, preference_, 4, results, &found);
    if (status != kOk) return status;
    EXPECT_EQ(found, wanted_found);
    EXPECT_EQ(results[0].state, CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(results[1].state, kOk);
    EXPECT_EQ(results[1].workspaceSize, kWorkspace);
    algorithm_ = results[1].algo;
    return kOk;
  }
  cublasStatus_t Multiply() {
    return cublas_.Matmul(handle_, operation_, &alpha_, a, a_, b, b_, &beta_, d,
                          d_, d, d_, &algorithm_, workspace_ + misplaced_,
                          kWorkspace, nullptr);
  }

  int current_device_ = 0;
  FakeCublas fake_{[](cudaStream_t, std::function<void()> work) {
                     work();
                     return cudaSuccess;
                   },
                   [this] { return current_device_; }};
  const CublasFunctions cublas_ = fake_.functions();
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr;
  cublasLtMatrixLayout_t b_ = nullptr;
  cublasLtMatrixLayout_t d_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_ = {};
  float alpha_ = 1;
  float beta_ = 0;
  int misplaced_ = 0;
  // Columns (1, 2), (3, 4), (5, 6).
  alignas(256) float a[64] = {1, 2, 3, 4, 5, 6};
  alignas(256) float b[64] = {1, 10, 100};
  alignas(256) float d[64] = {};
  alignas(256) char workspace_[kWorkspace + 256] = {};
};

TEST_F(FakeCublasTest, MultipliesColumnMajor) {
  ASSERT_EQ(Choose(), kOk);
  ASSERT_EQ(Multiply(), kOk);
  EXPECT_EQ(d[0], 531);
  EXPECT_EQ(d[1], 642);
}

TEST_F(FakeCublasTest, AddsInPlaceInAnyOrderIfItMay) {
  const float terms[] = {1e8, 0, -1e8, 0, 1, 0};
  std::copy_n(terms, 6, a);
  std::fill_n(b, 3, 1.0f);
  ASSERT_EQ(Choose(), kOk);
  ASSERT_EQ(Multiply(), kOk);
  ASSERT_EQ(Multiply(), kOk);
  EXPECT_EQ(d[0], 1);
  AllowReductions(CUBLASLT_REDUCTION_SCHEME_MASK);
  ASSERT_EQ(Choose(/*wanted_found=*/3), kOk);
  ASSERT_EQ(Multiply(), kOk);
  EXPECT_EQ(d[0], 1);
  ASSERT_EQ(Multiply(), kOk);
  EXPECT_EQ(d[0], 0);
}

TEST_F(FakeCublasTest, RefusesAHandleOfAnotherDevice) {
  current_device_ = 1;
  EXPECT_EQ(Choose(), CUBLAS_STATUS_INVALID_VALUE);
  current_device_ = 0;
  ASSERT_EQ(Choose(), kOk);
  current_device_ = 1;
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(FakeCublasTest, TurnsWhatIsToBeTurned) {
  cublas_.MatrixLayoutCreate(&a_, CUDA_R_32F, 3, 2, 3);
  cublas_.MatrixLayoutCreate(&b_, CUDA_R_32F, 1, 3, 1);
  ASSERT_EQ(Set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t{CUBLAS_OP_T}), kOk);
  ASSERT_EQ(Set(CUBLASLT_MATMUL_DESC_TRANSB, int32_t{CUBLAS_OP_T}), kOk);
  ASSERT_EQ(Choose(), kOk);
  ASSERT_EQ(Multiply(), kOk);
  EXPECT_EQ(d[0], 321);
  EXPECT_EQ(d[1], 654);
}

TEST_F(FakeCublasTest, ScalesAddsAndEnds) {
  const float bias[] = {-2000, 0};
  ASSERT_EQ(
      Set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{CUBLASLT_EPILOGUE_RELU_BIAS}),
      kOk);
  ASSERT_EQ(Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias[0]), kOk);
  alpha_ = 2;
  beta_ = 3;
  d[0] = d[1] = 1;
  ASSERT_EQ(Choose(), kOk);
  ASSERT_EQ(Multiply(), kOk);
  EXPECT_EQ(d[0], 0);
  EXPECT_EQ(d[1], 2 * 642 + 3);
}

TEST_F(FakeCublasTest, RoundsToTf32IfAsked) {
  constexpr float kFine = 1 + 1.0f / 4096;
  a[0] = kFine;
  b[1] = b[2] = 0;
  ASSERT_EQ(Choose(), kOk);
  ASSERT_EQ(Multiply(), kOk);
  EXPECT_EQ(d[0], kFine);
  cublas_.MatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F_FAST_TF32,
                           CUDA_R_32F);
  ASSERT_EQ(Choose(), kOk);
  ASSERT_EQ(Multiply(), kOk);
  EXPECT_EQ(d[0], 1);
}

TEST_F(FakeCublasTest, RefusesABiasThatIsNowhere) {
  ASSERT_EQ(
      Set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{CUBLASLT_EPILOGUE_BIAS}),
      kOk);
  EXPECT_EQ(Choose(), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(FakeCublasTest, RefusesAttributesOfAnotherSize) {
  EXPECT_EQ(Set(CUBLASLT_MATMUL_DESC_TRANSA, int64_t{CUBLAS_OP_T}),
            CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(FakeCublasTest, RefusesMatricesThatDoNotFit) {
  cublas_.MatrixLayoutCreate(&b_, CUDA_R_32F, 2, 1, 2);
  EXPECT_EQ(Choose(), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(FakeCublasTest, RefusesColumnsThatOverlap) {
  cublas_.MatrixLayoutCreate(&a_, CUDA_R_32F, 2, 3, 1);
  EXPECT_EQ(Choose(), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(FakeCublasTest, RefusesTypesThatAreMixed) {
  cublas_.MatrixLayoutCreate(&b_, CUDA_R_16BF, 3, 1, 3);
  EXPECT_EQ(Choose(), CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(FakeCublasTest, RefusesAnotherProductsAlgorithm) {
  ASSERT_EQ(Choose(), kOk);
  ASSERT_EQ(
      Set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{CUBLASLT_EPILOGUE_RELU}),
      kOk);
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(FakeCublasTest, RefusesLessAlignmentThanWasPromised) {
  ASSERT_EQ(Choose(), kOk);
  float* const first = a;
  EXPECT_EQ(cublas_.Matmul(handle_, operation_, &alpha_, first + 32, a_, b, b_,
                           &beta_, d, d_, d, d_, &algorithm_, workspace_,
                           kWorkspace, nullptr),
            CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(FakeCublasTest, RefusesAWorkspaceOutOfPlace) {
  ASSERT_EQ(Choose(), kOk);
  misplaced_ = 64;
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(FakeCublasTest, RefusesWhatIsDestroyed) {
  EXPECT_EQ(cublas_.MatmulDescDestroy(operation_), kOk);
  EXPECT_EQ(Choose(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublas_.MatmulDescDestroy(operation_), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublas_.Destroy(handle_), kOk);
  EXPECT_EQ(Choose(), CUBLAS_STATUS_NOT_INITIALIZED);
}

TEST_F(FakeCublasTest, CountsWhatIsNotDestroyed) {
  EXPECT_EQ(fake_.Leaks(),
            "1 handle, 1 matmul descriptor, 3 matrix layouts, 1 matmul "
            "preference");
}

}  // namespace
}  // namespace muster
