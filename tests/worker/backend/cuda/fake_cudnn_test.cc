#include "tests/worker/backend/cuda/fake_cudnn.h"

#include <cmath>
#include <functional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/backend/cuda/fake_numbers.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr cudnnStatus_t kOk = CUDNN_STATUS_SUCCESS;
constexpr cudnnConvolutionFwdAlgo_t kForward =
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
constexpr size_t kWorkspace = 1000;

// A convolution of [1, 2, 2, 3] with [1, 2, 2, 2], float32 in NCHW: dst is
// [1, 1, 1, 2].
class FakeCudnnTest : public testing::Test {
 protected:
  FakeCudnnTest() {
    cudnn_.Create(&handle_);
    cudnn_.SetStream(handle_, nullptr);
    cudnn_.CreateTensorDescriptor(&x_);
    cudnn_.CreateTensorDescriptor(&y_);
    cudnn_.CreateTensorDescriptor(&bias_);
    cudnn_.CreateFilterDescriptor(&w_);
    cudnn_.CreateConvolutionDescriptor(&convolution_);
    cudnn_.CreateActivationDescriptor(&activation_);
    SetAll(CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW);
    cudnn_.SetConvolution2dDescriptor(convolution_, 0, 0, 1, 1, 1, 1,
                                      CUDNN_CROSS_CORRELATION,
                                      CUDNN_DATA_FLOAT);
    cudnn_.SetActivationDescriptor(activation_, CUDNN_ACTIVATION_RELU,
                                   CUDNN_NOT_PROPAGATE_NAN, 0);
  }

  void SetAll(cudnnDataType_t type, cudnnTensorFormat_t format) {
    EXPECT_EQ(cudnn_.SetTensor4dDescriptor(x_, format, type, 1, 2, 2, 3), kOk);
    EXPECT_EQ(cudnn_.SetTensor4dDescriptor(y_, format, type, 1, 1, 1, 2), kOk);
    EXPECT_EQ(cudnn_.SetTensor4dDescriptor(bias_, format, type, 1, 1, 1, 1),
              kOk);
    EXPECT_EQ(cudnn_.SetFilter4dDescriptor(w_, type, format, 1, 2, 2, 2), kOk);
  }

  cudnnStatus_t Forward(size_t workspace = kWorkspace) {
    return cudnn_.ConvolutionForward(
        handle_, &alpha_, x_, x.data(), w_, w.data(), convolution_, kForward,
        memory_.data(), workspace, &beta_, y_, y.data());
  }
  cudnnStatus_t BiasActivationForward(cudnnConvolutionFwdAlgo_t algorithm) {
    return cudnn_.ConvolutionBiasActivationForward(
        handle_, &alpha_, x_, x.data(), w_, w.data(), convolution_, algorithm,
        memory_.data(), kWorkspace, &beta_, y_, y.data(), bias_, bias.data(),
        activation_, y_, y.data());
  }

  int current_device_ = 0;
  FakeCudnn fake_{[this](cudaStream_t, std::function<void()> work) {
                    if (enqueued_ == cudaSuccess) work();
                    return enqueued_;
                  },
                  [this] { return current_device_; }};
  const CudnnFunctions cudnn_ = fake_.functions();
  cudaError_t enqueued_ = cudaSuccess;
  cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t x_ = nullptr;
  cudnnTensorDescriptor_t y_ = nullptr;
  cudnnTensorDescriptor_t bias_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
  cudnnActivationDescriptor_t activation_ = nullptr;
  float alpha_ = 1;
  float beta_ = 0;
  std::vector<char> memory_ = std::vector<char>(kWorkspace);
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60};
  std::vector<float> w = {1, 0, 0, 1, 0, 1, 0, -1};
  std::vector<float> bias = {10};
  std::vector<float> y = {NAN, NAN};
};

TEST_F(FakeCudnnTest, RefusesAHandleOfAnotherDevice) {
  current_device_ = 1;
  EXPECT_EQ(Forward(), CUDNN_STATUS_BAD_PARAM);
  size_t bytes = 0;
  EXPECT_EQ(cudnn_.GetConvolutionForwardWorkspaceSize(
                handle_, x_, w_, convolution_, y_, kForward, &bytes),
            CUDNN_STATUS_BAD_PARAM);
  current_device_ = 0;
  EXPECT_EQ(Forward(), kOk);
}

TEST_F(FakeCudnnTest, ComputesACrossCorrelation) {
  ASSERT_EQ(Forward(), kOk);
  // 1 + 5 + 20 - 50, 2 + 6 + 30 - 60.
  EXPECT_THAT(y, ElementsAre(-24, -22));
}

TEST_F(FakeCudnnTest, ReadsChannelsLast) {
  SetAll(CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC);
  x = {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60};
  w = {1, 0, 0, 1, 0, 0, 1, -1};
  ASSERT_EQ(Forward(), kOk);
  EXPECT_THAT(y, ElementsAre(-24, -22));
}

TEST_F(FakeCudnnTest, ScalesAndAdds) {
  y = {1, 2};
  alpha_ = 2;
  beta_ = 100;
  ASSERT_EQ(Forward(), kOk);
  EXPECT_THAT(y, ElementsAre(-48 + 100, -44 + 200));
}

TEST_F(FakeCudnnTest, PadsAndStrides) {
  cudnn_.SetConvolution2dDescriptor(convolution_, 1, 0, 2, 1, 1, 1,
                                    CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  cudnn_.SetTensor4dDescriptor(y_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 2,
                               2);
  y.resize(4);
  ASSERT_EQ(Forward(), kOk);
  // Row -1 and 0: 2 - 20, 3 - 30. Row 1 and 2: 4 + 50, 5 + 60.
  EXPECT_THAT(y, ElementsAre(-18, -27, 54, 65));
}

TEST_F(FakeCudnnTest, GradientsAreTheTransposes) {
  y = {1, 2};
  std::vector<float> dw(w.size());
  ASSERT_EQ(cudnn_.ConvolutionBackwardFilter(
                handle_, &alpha_, x_, x.data(), y_, y.data(), convolution_,
                CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, memory_.data(), kWorkspace,
                &beta_, w_, dw.data()),
            kOk);
  // For each tap the elements under both positions, times 1 and 2.
  EXPECT_THAT(dw, ElementsAre(5, 8, 14, 17, 50, 80, 140, 170));
  std::vector<float> dx(x.size());
  ASSERT_EQ(cudnn_.ConvolutionBackwardData(
                handle_, &alpha_, w_, w.data(), y_, y.data(), convolution_,
                CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, memory_.data(), kWorkspace,
                &beta_, x_, dx.data()),
            kOk);
  EXPECT_THAT(dx, ElementsAre(1, 2, 0, 0, 1, 2, 0, 1, 2, 0, -1, -2));
}

TEST_F(FakeCudnnTest, EndsWithBiasAndActivation) {
  bias = {23};
  ASSERT_EQ(BiasActivationForward(kForward), kOk);
  EXPECT_THAT(y, ElementsAre(0, 1));
}

TEST_F(FakeCudnnTest, WithoutAnActivationOneAlgorithmAlone) {
  cudnn_.SetActivationDescriptor(activation_, CUDNN_ACTIVATION_IDENTITY,
                                 CUDNN_NOT_PROPAGATE_NAN, 0);
  ASSERT_EQ(BiasActivationForward(kForward), kOk);
  EXPECT_THAT(y, ElementsAre(-14, -12));
  EXPECT_EQ(BiasActivationForward(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM),
            CUDNN_STATUS_NOT_SUPPORTED);
}

// Seen on an H200 with cuDNN 9.19.
TEST_F(FakeCudnnTest, AFusedReluLosesNanAlsoIfToldToKeepIt) {
  x[0] = NAN;
  for (const auto nan : {CUDNN_NOT_PROPAGATE_NAN, CUDNN_PROPAGATE_NAN}) {
    cudnn_.SetActivationDescriptor(activation_, CUDNN_ACTIVATION_RELU, nan, 0);
    ASSERT_EQ(BiasActivationForward(kForward), kOk);
    EXPECT_EQ(y[0], 0);
  }
}

TEST_F(FakeCudnnTest, ABiasAloneKeepsNan) {
  cudnn_.SetActivationDescriptor(activation_, CUDNN_ACTIVATION_IDENTITY,
                                 CUDNN_NOT_PROPAGATE_NAN, 0);
  x[0] = NAN;
  ASSERT_EQ(BiasActivationForward(kForward), kOk);
  EXPECT_TRUE(std::isnan(y[0]));
}

// 1 + 2^-11 + 2^-12 is rounded up to 1 + 2^-10.
TEST_F(FakeCudnnTest, RoundsToTf32UnlessMathIsFma) {
  constexpr float kFine = 1 + 3.0f / 4096;
  x.assign(x.size(), 0);
  x[0] = kFine;
  ASSERT_EQ(Forward(), kOk);
  EXPECT_EQ(y[0], 1 + 1.0f / 1024);
  cudnn_.SetConvolutionMathType(convolution_, CUDNN_FMA_MATH);
  ASSERT_EQ(Forward(), kOk);
  EXPECT_EQ(y[0], kFine);
}

TEST_F(FakeCudnnTest, OverwritesTheWorkspace) {
  ASSERT_EQ(Forward(), kOk);
  EXPECT_THAT(memory_, Each('\xFF'));
}

TEST_F(FakeCudnnTest, RefusesTooSmallAWorkspace) {
  EXPECT_EQ(Forward(kWorkspace - 1), CUDNN_STATUS_BAD_PARAM);
  EXPECT_TRUE(std::isnan(y[0]));
}

TEST_F(FakeCudnnTest, RefusesTensorsThatDoNotFit) {
  cudnn_.SetTensor4dDescriptor(y_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 2,
                               2);
  EXPECT_EQ(Forward(), CUDNN_STATUS_BAD_PARAM);
  cudnn_.SetTensor4dDescriptor(y_, CUDNN_TENSOR_NCHW, CUDNN_DATA_BFLOAT16, 1, 1,
                               1, 2);
  EXPECT_EQ(Forward(), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(FakeCudnnTest, RefusesFormatsThatAreMixed) {
  cudnn_.SetFilter4dDescriptor(w_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, 1, 2, 2,
                               2);
  EXPECT_EQ(Forward(), CUDNN_STATUS_NOT_SUPPORTED);
}

TEST_F(FakeCudnnTest, RefusesSizesThatAreNone) {
  EXPECT_EQ(cudnn_.SetTensor4dDescriptor(x_, CUDNN_TENSOR_NCHW,
                                         CUDNN_DATA_FLOAT, 1, 0, 2, 3),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(
      cudnn_.SetTensor4dDescriptor(x_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   1 << 11, 1 << 10, 1 << 10, 1),
      CUDNN_STATUS_NOT_SUPPORTED);
}

TEST_F(FakeCudnnTest, RefusesWhatIsDestroyed) {
  EXPECT_EQ(cudnn_.DestroyTensorDescriptor(x_), kOk);
  EXPECT_EQ(Forward(), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(cudnn_.DestroyTensorDescriptor(x_), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(FakeCudnnTest, RefusesAStreamThatFails) {
  enqueued_ = cudaErrorInvalidResourceHandle;
  EXPECT_EQ(Forward(), CUDNN_STATUS_EXECUTION_FAILED_CUDART);
}

TEST_F(FakeCudnnTest, CountsWhatIsNotDestroyed) {
  EXPECT_EQ(fake_.Leaks(),
            "1 handle, 3 tensor descriptors, 1 filter descriptor, 1 "
            "convolution descriptor, 1 activation descriptor");
}

TEST(FakeNumbersTest, RoundsTiesToEven) {
  EXPECT_EQ(RoundToTf32(1 + 1.0f / 2048), 1);
  EXPECT_EQ(RoundToTf32(1 + 3.0f / 2048), 1 + 2.0f / 1024);
  EXPECT_EQ(FromBf16(ToBf16(1 + 1.0f / 256)), 1);
  EXPECT_EQ(FromBf16(ToBf16(1 + 3.0f / 256)), 1 + 2.0f / 128);
  EXPECT_EQ(FromBf16(ToBf16(-INFINITY)), -INFINITY);
  EXPECT_TRUE(std::isnan(FromBf16(ToBf16(NAN))));
  EXPECT_EQ(FromBf16(ToBf16(3.4e38f)), INFINITY);
}

}  // namespace
}  // namespace muster
