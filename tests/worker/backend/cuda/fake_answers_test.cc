// The fakes answer as cuDNN and cuBLASLt do, where these answer without a
// device: about descriptors.
#include <cstdint>
#include <memory>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/fake_gpu.h"
#include "worker/backend/cuda/gpu_libraries.h"

namespace muster {
namespace {

// Its square has more elements than 32 bits count.
constexpr int kLarge = 1 << 16;

class FakeAnswersTest : public testing::Test {
 protected:
  void SetUp() override {
    auto gpu = LoadGpuFunctions("");
    ASSERT_THAT(gpu, IsOk());
    real_ = *std::move(gpu);
  }

  // Asks both for the same.
  template <typename Ask>
  void Compare(Ask ask) {
    EXPECT_EQ(ask(fake_.functions()), ask(*real_));
  }

  FakeGpu fake_;
  std::unique_ptr<const GpuFunctions> real_;
};

TEST_F(FakeAnswersTest, AboutTensors) {
  struct Case {
    cudnnTensorFormat_t format;
    cudnnDataType_t type;
    int n, c, h, w;
  };
  for (const Case& tensor : {
           Case{CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 2, 3, 5, 7},
           Case{CUDNN_TENSOR_NCHW, CUDNN_DATA_BFLOAT16, 2, 3, 5, 7},
           Case{CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 0, 3, 5, 7},
           Case{CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 1, -1, 5, 7},
           Case{CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, kLarge, kLarge, 1, 1},
           Case{CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, kLarge, kLarge, 1, 1},
       }) {
    SCOPED_TRACE(tensor.n);
    Compare([&](const GpuFunctions& gpu) {
      cudnnTensorDescriptor_t made = nullptr;
      EXPECT_EQ(gpu.cudnn.CreateTensorDescriptor(&made), CUDNN_STATUS_SUCCESS);
      const cudnnStatus_t status = gpu.cudnn.SetTensor4dDescriptor(
          made, tensor.format, tensor.type, tensor.n, tensor.c, tensor.h,
          tensor.w);
      gpu.cudnn.DestroyTensorDescriptor(made);
      return status;
    });
    Compare([&](const GpuFunctions& gpu) {
      cudnnFilterDescriptor_t made = nullptr;
      EXPECT_EQ(gpu.cudnn.CreateFilterDescriptor(&made), CUDNN_STATUS_SUCCESS);
      const cudnnStatus_t status = gpu.cudnn.SetFilter4dDescriptor(
          made, tensor.type, tensor.format, tensor.n, tensor.c, tensor.h,
          tensor.w);
      gpu.cudnn.DestroyFilterDescriptor(made);
      return status;
    });
  }
}

TEST_F(FakeAnswersTest, AboutConvolutions) {
  struct Case {
    int pad, stride, dilation;
  };
  for (const Case& window : {Case{0, 1, 1}, Case{2, 3, 1}, Case{-1, 1, 1},
                             Case{0, 0, 1}, Case{0, 1, 0}}) {
    SCOPED_TRACE(window.pad);
    Compare([&](const GpuFunctions& gpu) {
      cudnnConvolutionDescriptor_t made = nullptr;
      EXPECT_EQ(gpu.cudnn.CreateConvolutionDescriptor(&made),
                CUDNN_STATUS_SUCCESS);
      const cudnnStatus_t status = gpu.cudnn.SetConvolution2dDescriptor(
          made, window.pad, window.pad, window.stride, window.stride,
          window.dilation, window.dilation, CUDNN_CROSS_CORRELATION,
          CUDNN_DATA_FLOAT);
      gpu.cudnn.DestroyConvolutionDescriptor(made);
      return status;
    });
  }
}

TEST_F(FakeAnswersTest, AboutGroups) {
  for (const int groups : {1, 4, 0, -1}) {
    SCOPED_TRACE(groups);
    Compare([&](const GpuFunctions& gpu) {
      cudnnConvolutionDescriptor_t made = nullptr;
      EXPECT_EQ(gpu.cudnn.CreateConvolutionDescriptor(&made),
                CUDNN_STATUS_SUCCESS);
      const cudnnStatus_t status =
          gpu.cudnn.SetConvolutionGroupCount(made, groups);
      gpu.cudnn.DestroyConvolutionDescriptor(made);
      return status;
    });
  }
}

TEST_F(FakeAnswersTest, AboutMath) {
  for (const cudnnMathType_t math :
       {CUDNN_DEFAULT_MATH, CUDNN_TENSOR_OP_MATH, CUDNN_FMA_MATH}) {
    Compare([&](const GpuFunctions& gpu) {
      cudnnConvolutionDescriptor_t made = nullptr;
      EXPECT_EQ(gpu.cudnn.CreateConvolutionDescriptor(&made),
                CUDNN_STATUS_SUCCESS);
      const cudnnStatus_t status = gpu.cudnn.SetConvolutionMathType(made, math);
      gpu.cudnn.DestroyConvolutionDescriptor(made);
      return status;
    });
  }
}

TEST_F(FakeAnswersTest, AboutActivations) {
  for (const cudnnActivationMode_t mode :
       {CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_IDENTITY}) {
    Compare([&](const GpuFunctions& gpu) {
      cudnnActivationDescriptor_t made = nullptr;
      EXPECT_EQ(gpu.cudnn.CreateActivationDescriptor(&made),
                CUDNN_STATUS_SUCCESS);
      const cudnnStatus_t status =
          gpu.cudnn.SetActivationDescriptor(made, mode, CUDNN_PROPAGATE_NAN, 0);
      gpu.cudnn.DestroyActivationDescriptor(made);
      return status;
    });
  }
}

TEST_F(FakeAnswersTest, AboutNothing) {
  Compare([](const GpuFunctions& gpu) {
    return gpu.cudnn.CreateTensorDescriptor(nullptr);
  });
  Compare([](const GpuFunctions& gpu) {
    return gpu.cudnn.SetTensor4dDescriptor(nullptr, CUDNN_TENSOR_NHWC,
                                           CUDNN_DATA_FLOAT, 1, 1, 1, 1);
  });
  Compare([](const GpuFunctions& gpu) {
    return gpu.cublas.MatmulDescCreate(nullptr, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  });
}

TEST_F(FakeAnswersTest, AboutMatrices) {
  struct Case {
    uint64_t rows, columns;
    int64_t leading;
  };
  for (const Case& matrix : {Case{2, 3, 2}, Case{2, 3, 5}, Case{2, 3, 1},
                             Case{0, 3, 1}, Case{1, 1, 1}}) {
    SCOPED_TRACE(matrix.leading);
    Compare([&](const GpuFunctions& gpu) {
      cublasLtMatrixLayout_t made = nullptr;
      const cublasStatus_t status = gpu.cublas.MatrixLayoutCreate(
          &made, CUDA_R_32F, matrix.rows, matrix.columns, matrix.leading);
      if (status == CUBLAS_STATUS_SUCCESS) {
        gpu.cublas.MatrixLayoutDestroy(made);
      }
      return status;
    });
  }
}

TEST_F(FakeAnswersTest, AboutAttributes) {
  const int64_t value = 0;
  for (const size_t bytes : {size_t{4}, size_t{8}, size_t{2}}) {
    for (const cublasLtMatmulDescAttributes_t attribute :
         {CUBLASLT_MATMUL_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSB,
          CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_BIAS_POINTER}) {
      SCOPED_TRACE(attribute);
      Compare([&](const GpuFunctions& gpu) {
        cublasLtMatmulDesc_t made = nullptr;
        EXPECT_EQ(
            gpu.cublas.MatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
        const cublasStatus_t status =
            gpu.cublas.MatmulDescSetAttribute(made, attribute, &value, bytes);
        gpu.cublas.MatmulDescDestroy(made);
        return status;
      });
    }
    for (const cublasLtMatmulPreferenceAttributes_t attribute :
         {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
          CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES}) {
      SCOPED_TRACE(attribute);
      Compare([&](const GpuFunctions& gpu) {
        cublasLtMatmulPreference_t made = nullptr;
        EXPECT_EQ(gpu.cublas.MatmulPreferenceCreate(&made),
                  CUBLAS_STATUS_SUCCESS);
        const cublasStatus_t status = gpu.cublas.MatmulPreferenceSetAttribute(
            made, attribute, &value, bytes);
        gpu.cublas.MatmulPreferenceDestroy(made);
        return status;
      });
    }
  }
}

}  // namespace
}  // namespace muster
