#include "worker/backend/cuda/elementwise_kernel.h"

#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/host_stream.h"

namespace muster {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsNan;
using Floats = std::vector<float>;

constexpr double kSlope = 0.25;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class ElementwiseKernelTest : public testing::Test {
 protected:
  Floats Forward(ActivationKind kind, const Floats& src) {
    Floats dst(src.size());
    EXPECT_THAT(ActivationForward(stream_.get(), {kind, kSlope}, src.data(),
                                  dst.data(), static_cast<int64_t>(src.size())),
                IsOk());
    return dst;
  }
  Floats Backward(ActivationKind kind, const Floats& dst) {
    const Floats diff_dst(dst.size(), 2.0f);
    Floats diff_src(dst.size());
    EXPECT_THAT(ActivationBackward(stream_.get(), {kind, kSlope}, dst.data(),
                                   diff_dst.data(), diff_src.data(),
                                   static_cast<int64_t>(dst.size())),
                IsOk());
    return diff_src;
  }
  Floats Sum(const std::vector<Floats>& srcs, float divisor) {
    std::vector<const float*> pointers;
    for (const Floats& src : srcs) pointers.push_back(src.data());
    Floats dst(srcs[0].size());
    EXPECT_THAT(DividedSum(stream_.get(), pointers, divisor, dst.data(),
                           static_cast<int64_t>(dst.size())),
                IsOk());
    return dst;
  }

  HostStream stream_;
};

TEST_F(ElementwiseKernelTest, ActivationsHoldAtTheEnds) {
  const Floats ends = {-kInfinity, 0, kInfinity};
  EXPECT_THAT(Forward(ActivationKind::kRelu, ends),
              ElementsAre(0, 0, kInfinity));
  EXPECT_THAT(Forward(ActivationKind::kSigmoid, ends), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(Forward(ActivationKind::kTanh, ends), ElementsAre(-1, 0, 1));
  EXPECT_THAT(Forward(ActivationKind::kLeakyRelu, {-kInfinity, -4, 0, 4}),
              ElementsAre(-kInfinity, -1, 0, 4));
}

TEST_F(ElementwiseKernelTest, ActivationsKeepNan) {
  const Floats nan = {std::numeric_limits<float>::quiet_NaN()};
  for (const ActivationKind kind :
       {ActivationKind::kRelu, ActivationKind::kSigmoid, ActivationKind::kTanh,
        ActivationKind::kLeakyRelu}) {
    EXPECT_THAT(Forward(kind, nan), ElementsAre(IsNan()));
  }
}

TEST_F(ElementwiseKernelTest, DerivativesAreOfDst) {
  const Floats dst = {0, 0.5, 1};
  EXPECT_THAT(Backward(ActivationKind::kRelu, dst), ElementsAre(0, 2, 2));
  EXPECT_THAT(Backward(ActivationKind::kSigmoid, dst), ElementsAre(0, 0.5, 0));
  EXPECT_THAT(Backward(ActivationKind::kTanh, dst), ElementsAre(2, 1.5, 0));
  EXPECT_THAT(Backward(ActivationKind::kLeakyRelu, {-1, 0, 1}),
              ElementsAre(0.5, 0.5, 2));
}

TEST_F(ElementwiseKernelTest, AddsABiasToEachRow) {
  const Floats bias = {1, -2, 3};
  Floats dst = {0, 0, 0, -1, 5, -4};
  ASSERT_THAT(AddBias(stream_.get(), bias.data(), 3, /*relu=*/false, dst.data(),
                      /*rows=*/2),
              IsOk());
  EXPECT_THAT(dst, ElementsAre(1, -2, 3, 0, 3, -1));
}

TEST_F(ElementwiseKernelTest, EndsABiasWithAReluThatKeepsNan) {
  const Floats bias = {1, -2, 3};
  Floats dst = {0, 0, std::numeric_limits<float>::quiet_NaN()};
  ASSERT_THAT(AddBias(stream_.get(), bias.data(), 3, /*relu=*/true, dst.data(),
                      /*rows=*/1),
              IsOk());
  EXPECT_THAT(dst, ElementsAre(1, 0, IsNan()));
}

// No number of channels divides the grid.
TEST_F(ElementwiseKernelTest, AddsABiasToMoreElementsThanTheGridHasThreads) {
  const Floats bias = {0, 1, 2, 3, 4, 5, 6};
  const int64_t rows = kMostBlocks * kBlockThreads / 7 + 3;
  Floats dst(rows * 7, 10);
  ASSERT_THAT(
      AddBias(stream_.get(), bias.data(), 7, /*relu=*/false, dst.data(), rows),
      IsOk());
  for (int64_t i = 0; i < rows * 7; ++i) ASSERT_EQ(dst[i], 10 + i % 7) << i;
}

TEST_F(ElementwiseKernelTest, SumsAnyNumberOfSources) {
  for (const int count : {1, 2, 8, 9, 15, 16, 40}) {
    SCOPED_TRACE(count);
    std::vector<Floats> srcs;
    float wanted = 0;
    for (int i = 0; i < count; ++i) {
      srcs.push_back(Floats(3, static_cast<float>(i + 1)));
      wanted += static_cast<float>(i + 1);
    }
    EXPECT_THAT(Sum(srcs, 3), Each(wanted / 3));
  }
}

TEST_F(ElementwiseKernelTest, SumsIntoItsFirstSource) {
  Floats sum = {1, 2};
  const Floats other = {10, 20};
  const std::vector<const float*> srcs = {
      sum.data(),   other.data(), other.data(), other.data(), other.data(),
      other.data(), other.data(), other.data(), other.data(), other.data()};
  ASSERT_THAT(DividedSum(stream_.get(), srcs, 1, sum.data(), 2), IsOk());
  EXPECT_THAT(sum, ElementsAre(91, 182));
}

TEST_F(ElementwiseKernelTest, TakesMoreElementsThanTheGridHasThreads) {
  const Floats src(kMostBlocks * kBlockThreads + 1, -1.0f);
  EXPECT_EQ(Forward(ActivationKind::kRelu, src), Floats(src.size(), 0));
  EXPECT_EQ(Backward(ActivationKind::kRelu, src), Floats(src.size(), 0));
  EXPECT_EQ(Sum({src, src}, 4), Floats(src.size(), -0.5f));
}

TEST_F(ElementwiseKernelTest, NoElementsAreNoError) {
  EXPECT_THAT(Forward(ActivationKind::kRelu, {}), ElementsAre());
  EXPECT_THAT(Sum({{}, {}}, 1), ElementsAre());
}

}  // namespace
}  // namespace muster
