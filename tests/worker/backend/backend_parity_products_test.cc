// Convolutions and dense layers of every backend against the oracle in double.
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/backend/backend_parity.h"
#include "tests/worker/backend/primitive_run.h"
#include "worker/backend/backend.h"

namespace muster {
namespace {

using BackendParityProductsTest = BackendParityTest;

// A random src, weights and, if the description has one, a bias of `biases`.
template <typename Desc>
std::vector<std::pair<Operand, Values>> ForwardInputs(const Desc& d,
                                                      int64_t biases,
                                                      uint64_t seed) {
  std::vector<std::pair<Operand, Values>> inputs = {
      {Operand::kSrc, RandomValues(d.src_shape().num_elements(), seed)},
      {Operand::kWeights,
       RandomValues(d.weights_shape().num_elements(), seed + 1)}};
  if (d.has_bias) {
    inputs.push_back({Operand::kBias, RandomValues(biases, seed + 2)});
  }
  return inputs;
}

std::vector<Conv2dDesc> ConvCases() {
  // kernel h, w, stride h, w, pads top, bottom, left, right.
  const WindowDesc one = {1, 1, 1, 1, 0, 0, 0, 0};
  const WindowDesc same3 = {3, 3, 1, 1, 1, 1, 1, 1};
  const WindowDesc same5 = {5, 5, 1, 1, 2, 2, 2, 2};
  const WindowDesc strided = {3, 3, 2, 2, 0, 1, 0, 1};
  const WindowDesc valid5 = {5, 5, 1, 1, 0, 0, 0, 0};
  const WindowDesc uneven5 = {5, 5, 1, 1, 4, 0, 1, 3};
  const WindowDesc uneven = {3, 5, 2, 1, 2, 0, 1, 3};
  return {
      {1, 1, 1, 1, 1, one, true, false},
      {3, 1, 5, 9, 7, same5, true, true},
      {3, 1, 48, 9, 7, same5, true, true},
      {2, 1, 16, 6, 13, uneven5, false, true},
      {1, 3, 17, 8, 8, same3, true, false},
      {3, 5, 3, 7, 9, strided, false, true},
      {1, 17, 5, 6, 11, valid5, true, false},
      {3, 17, 17, 5, 5, uneven, true, true},
      {1, 32, 16, 6, 6, one, true, true},
      // The Winograd kernel wants 96 tiles of 2x2.
      {7, 16, 32, 7, 7, same5, true, false},
      {5, 16, 48, 7, 9, same5, true, true},
      {4, 32, 16, 15, 14, valid5, false, false},
      {5, 48, 64, 6, 13, uneven5, true, true},
      // Groups: odd ones, such as fill blocks of channels, and one a channel.
      {2, 6, 4, 7, 5, uneven, true, true, /*groups=*/2},
      {3, 32, 48, 7, 9, same5, true, true, 2},
      {1, 64, 32, 6, 5, strided, false, true, 4},
      {2, 17, 17, 7, 9, same3, true, true, 17},
      {1, 5, 15, 6, 6, strided, false, false, 5},
      {3, 32, 32, 9, 7, same5, true, false, 32},
  };
}

std::vector<DenseDesc> DenseCases() {
  return {{1, 1, 1, true, false},
          {3, 17, 5, true, true},
          {1, 5, 17, false, true},
          {3, 130, 33, true, false},
          {16, 64, 32, true, true},
          // More rows than outputs.
          {33, 17, 5, true, true}};
}

TEST_P(BackendParityProductsTest, Conv2dForward) {
  for (const Conv2dDesc& d : ConvCases()) {
    SCOPED_TRACE(d.dst_shape().ToString());
    const int64_t terms =
        d.src_channels / d.groups * d.window.kernel_h * d.window.kernel_w + 1;
    Compare(backend_->Create(d, Pass::kForward, {}),
            oracle_->Create(d, Pass::kForward, {}),
            ForwardInputs(d, d.dst_channels, kSeed), {Operand::kDst},
            ProductTolerance(terms));
  }
}

// With and without a bias and a ReLU after it.
TEST_P(BackendParityProductsTest, ProductsKeepNan) {
  const auto with_nan = [](std::vector<std::pair<Operand, Values>> inputs) {
    inputs[0].second[0] = std::nan("");
    return inputs;
  };
  for (const Conv2dDesc& d : ConvCases()) {
    SCOPED_TRACE(d.dst_shape().ToString());
    CompareNan(backend_->Create(d, Pass::kForward, {}),
               oracle_->Create(d, Pass::kForward, {}),
               with_nan(ForwardInputs(d, d.dst_channels, kSeed)),
               /*may_spread=*/d.window.kernel_h == 5 && d.src_channels > 1);
  }
  for (const DenseDesc& d : DenseCases()) {
    SCOPED_TRACE(d.weights_shape().ToString());
    CompareNan(backend_->Create(d, Pass::kForward, {}),
               oracle_->Create(d, Pass::kForward, {}),
               with_nan(ForwardInputs(d, d.dst_features, kSeed)));
  }
}

TEST_P(BackendParityProductsTest, Conv2dBackwardData) {
  for (const Conv2dDesc& d : ConvCases()) {
    SCOPED_TRACE(d.dst_shape().ToString());
    const int64_t terms =
        d.dst_channels / d.groups * d.window.kernel_h * d.window.kernel_w;
    Compare(
        backend_->Create(d, Pass::kBackwardData, {}),
        oracle_->Create(d, Pass::kBackwardData, {}),
        {{Operand::kDiffDst, RandomValues(d.dst_shape().num_elements(), kSeed)},
         {Operand::kWeights,
          RandomValues(d.weights_shape().num_elements(), kSeed + 1)}},
        {Operand::kDiffSrc}, ProductTolerance(terms));
  }
}

TEST_P(BackendParityProductsTest, Conv2dBackwardWeights) {
  for (const Conv2dDesc& d : ConvCases()) {
    SCOPED_TRACE(d.dst_shape().ToString());
    std::vector<Operand> outputs = {Operand::kDiffWeights};
    if (d.has_bias) outputs.push_back(Operand::kDiffBias);
    const int64_t terms = d.dst_shape().num_elements() / d.dst_channels;
    Compare(backend_->Create(d, Pass::kBackwardWeights, {}),
            oracle_->Create(d, Pass::kBackwardWeights, {}),
            {{Operand::kSrc, RandomValues(d.src_shape().num_elements(), kSeed)},
             {Operand::kDiffDst,
              RandomValues(d.dst_shape().num_elements(), kSeed + 1)}},
            outputs, ProductTolerance(terms));
  }
}

TEST_P(BackendParityProductsTest, TwoRunsGiveTheSameBits) {
  for (const Conv2dDesc& d : ConvCases()) {
    std::vector<char> first;
    for (int run = 0; run < 2; ++run) {
      PrimitiveRun conv(backend_.get(),
                        backend_->Create(d, Pass::kBackwardWeights, {}));
      ASSERT_TRUE(conv.ok());
      conv.Set(Operand::kSrc, RandomValues(d.src_shape().num_elements(), kSeed))
          .Set(Operand::kDiffDst,
               RandomValues(d.dst_shape().num_elements(), kSeed + 1));
      ASSERT_EQ(conv.Execute(), absl::OkStatus());
      if (run == 0) first = conv.Bytes(Operand::kDiffWeights);
      EXPECT_EQ(conv.Bytes(Operand::kDiffWeights), first);
    }
  }
}

TEST_P(BackendParityProductsTest, DenseForward) {
  for (const DenseDesc& d : DenseCases()) {
    SCOPED_TRACE(d.weights_shape().ToString());
    Compare(backend_->Create(d, Pass::kForward, {}),
            oracle_->Create(d, Pass::kForward, {}),
            ForwardInputs(d, d.dst_features, kSeed), {Operand::kDst},
            ProductTolerance(d.src_features + 1));
  }
}

TEST_P(BackendParityProductsTest, DenseBackward) {
  for (const DenseDesc& d : DenseCases()) {
    SCOPED_TRACE(d.weights_shape().ToString());
    const Values src = RandomValues(d.src_shape().num_elements(), kSeed);
    const Values weights =
        RandomValues(d.weights_shape().num_elements(), kSeed + 1);
    const Values diff_dst =
        RandomValues(d.dst_shape().num_elements(), kSeed + 2);
    Compare(backend_->Create(d, Pass::kBackwardData, {}),
            oracle_->Create(d, Pass::kBackwardData, {}),
            {{Operand::kDiffDst, diff_dst}, {Operand::kWeights, weights}},
            {Operand::kDiffSrc}, ProductTolerance(d.dst_features));
    std::vector<Operand> outputs = {Operand::kDiffWeights};
    if (d.has_bias) outputs.push_back(Operand::kDiffBias);
    Compare(backend_->Create(d, Pass::kBackwardWeights, {}),
            oracle_->Create(d, Pass::kBackwardWeights, {}),
            {{Operand::kSrc, src}, {Operand::kDiffDst, diff_dst}}, outputs,
            ProductTolerance(d.batch));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, BackendParityProductsTest,
                         testing::ValuesIn(ParityBackends()),
                         BackendParityProductsTest::NameOf);

}  // namespace
}  // namespace muster
