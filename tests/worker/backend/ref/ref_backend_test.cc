// The oracle against numbers worked out by hand: what the other tests of the
// backends rest on.
#include <cmath>
#include <memory>

#include "gtest/gtest.h"
#include "tests/worker/backend/primitive_run.h"
#include "worker/backend/backend.h"

namespace muster {
namespace {

constexpr double kExact = 0;
// A few roundings of double.
constexpr double kRounding = 1e-14;

class RefBackendTest : public testing::Test {
 protected:
  static MemoryLayout Layout(const Shape& shape) {
    return MemoryLayout::RowMajor(FLOAT64, shape);
  }
  static std::unique_ptr<Backend> Make() {
    auto backend = CreateBackend("ref_float64", {});
    EXPECT_TRUE(backend.ok()) << backend.status();
    return *std::move(backend);
  }

  const std::unique_ptr<Backend> ref_ = Make();
};

TEST_F(RefBackendTest, Conv2dIsACrossCorrelationWithPadding) {
  // Padding at the top and left only.
  const Conv2dDesc d = {1, 1, 1, 2, 2, {2, 2, 1, 1, 1, 0, 1, 0}, true, false};
  PrimitiveRun run(ref_.get(), ref_->Create(d, Pass::kForward, {}));
  run.Set(Operand::kSrc, {1, 2, 3, 4})
      .Set(Operand::kWeights, {10, 20, 30, 40})
      .Set(Operand::kBias, {5});
  ASSERT_EQ(run.Execute(), absl::OkStatus());
  EXPECT_EQ(run.Get(Operand::kDst),
            (Values{1 * 40 + 5, 1 * 30 + 2 * 40 + 5, 1 * 20 + 3 * 40 + 5,
                    1 * 10 + 2 * 20 + 3 * 30 + 4 * 40 + 5}));
}

TEST_F(RefBackendTest, Conv2dSumsChannelsAndStrides) {
  const Conv2dDesc d = {1, 2, 1, 3, 1, {1, 1, 2, 1, 0, 0, 0, 0}, false, true};
  PrimitiveRun run(ref_.get(), ref_->Create(d, Pass::kForward, {}));
  run.Set(Operand::kSrc, {1, 2, 3, 4, 5, 6}).Set(Operand::kWeights, {3, -1});
  ASSERT_EQ(run.Execute(), absl::OkStatus());
  // 3 * 1 - 4 = -1, which ReLU cuts; 3 * 3 - 6 = 3.
  EXPECT_EQ(run.Get(Operand::kDst), (Values{0, 3}));
}

TEST_F(RefBackendTest, Conv2dGroupsSeeTheirOwnChannels) {
  Conv2dDesc d = {1, 4, 2, 1, 1, {}, false, false};
  d.groups = 2;
  PrimitiveRun run(ref_.get(), ref_->Create(d, Pass::kForward, {}));
  run.Set(Operand::kSrc, {1, 2, 3, 4}).Set(Operand::kWeights, {10, 1, 10, 1});
  ASSERT_EQ(run.Execute(), absl::OkStatus());
  EXPECT_EQ(run.Get(Operand::kDst), (Values{12, 34}));
}

TEST_F(RefBackendTest, DenseMultipliesByRowsOfWeights) {
  const DenseDesc d = {2, 2, 3, true, false};
  PrimitiveRun run(ref_.get(), ref_->Create(d, Pass::kForward, {}));
  run.Set(Operand::kSrc, {1, 2, 3, 4})
      .Set(Operand::kWeights, {1, 0, 0, 1, 1, 1})
      .Set(Operand::kBias, {0, 0, 10});
  ASSERT_EQ(run.Execute(), absl::OkStatus());
  EXPECT_EQ(run.Get(Operand::kDst), (Values{1, 2, 13, 3, 4, 17}));
}

TEST_F(RefBackendTest, ActivationsAtKnownPoints) {
  const Shape shape = {3, 1};
  const Values src = {-1, 0, 2};
  const double e = std::exp(1.0);
  const std::pair<ActivationKind, Values> cases[] = {
      {ActivationKind::kRelu, {0, 0, 2}},
      {ActivationKind::kSigmoid, {1 / (1 + e), 0.5, e * e / (1 + e * e)}},
      {ActivationKind::kTanh, {std::tanh(-1.0), 0, std::tanh(2.0)}},
      {ActivationKind::kLeakyRelu, {-0.01, 0, 2}}};
  for (const auto& [kind, wanted] : cases) {
    PrimitiveRun run(ref_.get(), ref_->Create(ActivationDesc{kind},
                                              Pass::kForward, {Layout(shape)}));
    ASSERT_EQ(run.Set(Operand::kSrc, src).Execute(), absl::OkStatus());
    ExpectNear(run.Get(Operand::kDst), wanted, kRounding, kRounding, "dst");
  }
}

TEST_F(RefBackendTest, MaxPoolSendsTheGradientToTheFirstMaximum) {
  const PoolDesc d = {PoolKind::kMax, 1, 1, 2, 2, {2, 2, 2, 2, 0, 0, 0, 0}};
  const MemoryLayout layout = Layout(d.src_shape());
  PrimitiveRun run(ref_.get(), ref_->Create(d, Pass::kForward, {layout}));
  ASSERT_EQ(run.Set(Operand::kSrc, {-5, -1, -1, -3}).Execute(),
            absl::OkStatus());
  EXPECT_EQ(run.Get(Operand::kDst), (Values{-1}));
  PrimitiveRun back(ref_.get(), ref_->Create(d, Pass::kBackward, {layout}));
  back.Share(Operand::kWorkspace, run).Set(Operand::kDiffDst, {7});
  ASSERT_EQ(back.Execute(), absl::OkStatus());
  EXPECT_EQ(back.Get(Operand::kDiffSrc), (Values{0, 7, 0, 0}));
}

TEST_F(RefBackendTest, ReluBeforePoolCutsWhatIsNotPositive) {
  const PoolDesc d = {PoolKind::kMax, 1, 2, 1, 2, {1, 2, 1, 2}, true};
  const MemoryLayout layout = Layout(d.src_shape());
  PrimitiveRun run(ref_.get(), ref_->Create(d, Pass::kForward, {layout}));
  ASSERT_EQ(run.Set(Operand::kSrc, {-5, -1, -1, 3}).Execute(),
            absl::OkStatus());
  EXPECT_EQ(run.Get(Operand::kDst), (Values{0, 3}));
  PrimitiveRun back(ref_.get(), ref_->Create(d, Pass::kBackward, {layout}));
  back.Share(Operand::kWorkspace, run).Set(Operand::kDiffDst, {7, 8});
  ASSERT_EQ(back.Execute(), absl::OkStatus());
  EXPECT_EQ(back.Get(Operand::kDiffSrc), (Values{0, 0, 0, 8}));
}

TEST_F(RefBackendTest, AveragePoolLeavesPaddingOut) {
  const PoolDesc d = {PoolKind::kAverage, 1, 1, 1, 2, {1, 2, 1, 1, 0, 0, 1, 1}};
  PrimitiveRun run(ref_.get(),
                   ref_->Create(d, Pass::kForward, {Layout(d.src_shape())}));
  ASSERT_EQ(run.Set(Operand::kSrc, {2, 4}).Execute(), absl::OkStatus());
  EXPECT_EQ(run.Get(Operand::kDst), (Values{2, 3, 4}));
}

TEST_F(RefBackendTest, BatchNormGivesBiasedVariance) {
  BatchNormDesc d = {2, 1, 1, 1};
  d.epsilon = 3;
  PrimitiveRun run(ref_.get(),
                   ref_->Create(d, Pass::kForward, {Layout(d.src_shape())}));
  run.Set(Operand::kSrc, {1, 3})
      .Set(Operand::kWeights, {4})
      .Set(Operand::kBias, {10});
  ASSERT_EQ(run.Execute(), absl::OkStatus());
  // Mean 2, variance ((-1)^2 + 1^2) / 2 = 1, 4 / sqrt(1 + 3) = 2.
  EXPECT_EQ(run.Get(Operand::kMean), (Values{2}));
  EXPECT_EQ(run.Get(Operand::kVariance), (Values{1}));
  EXPECT_EQ(run.Get(Operand::kDst), (Values{8, 12}));
}

TEST_F(RefBackendTest, LayerNormStandardizesEachRow) {
  LayerNormDesc d = {2, 2};
  d.epsilon = 3;
  PrimitiveRun run(ref_.get(),
                   ref_->Create(d, Pass::kForward, {Layout(d.src_shape())}));
  run.Set(Operand::kSrc, {1, 3, 5, 5})
      .Set(Operand::kWeights, {4, 6})
      .Set(Operand::kBias, {10, 20});
  ASSERT_EQ(run.Execute(), absl::OkStatus());
  // Mean 2, variance ((-1)^2 + 1^2) / 2 = 1, 4 / sqrt(1 + 3) = 2.
  EXPECT_EQ(run.Get(Operand::kMean), (Values{2, 5}));
  EXPECT_EQ(run.Get(Operand::kVariance), (Values{1, 0}));
  EXPECT_EQ(run.Get(Operand::kDst), (Values{8, 23, 10, 20}));
}

TEST_F(RefBackendTest, ConcatJoinsChannelsOfEachImage) {
  const ConcatDesc d = {{{2, 1}, {2, 2}}};
  PrimitiveRun run(
      ref_.get(),
      ref_->Create(d, Pass::kForward, {Layout(d.srcs[0]), Layout(d.srcs[1])}));
  run.Set(Operand::kSrc, {1, 2}, 0).Set(Operand::kSrc, {3, 4, 5, 6}, 1);
  ASSERT_EQ(run.Execute(), absl::OkStatus());
  EXPECT_EQ(run.Get(Operand::kDst), (Values{1, 3, 4, 2, 5, 6}));
}

TEST_F(RefBackendTest, SoftmaxCrossEntropyOfEqualScores) {
  PrimitiveRun run(ref_.get(), ref_->Create(SoftmaxCrossEntropyDesc{2, 4},
                                            Pass::kForward, {}));
  run.Set(Operand::kSrc, {1, 1, 1, 1, 0, 0, 9, 0}).SetLabels({0, 2});
  run.operands().rows = 1;
  ASSERT_EQ(run.Execute(), absl::OkStatus());
  ExpectNear(run.Get(Operand::kLoss), {std::log(4.0)}, kRounding, kExact,
             "loss");
  EXPECT_EQ(run.Get(Operand::kCorrect), (Values{1}));
  ExpectNear(run.Get(Operand::kDiffSrc), {-0.75, 0.25, 0.25, 0.25, 0, 0, 0, 0},
             kRounding, kExact, "diff_src");
}

// softmax {1/2, 1/4, 1/4}, targets {0.8, 0.1, 0.1}.
TEST_F(RefBackendTest, LabelSmoothingGivesEachClassAPart) {
  PrimitiveRun run(ref_.get(), ref_->Create(SoftmaxCrossEntropyDesc{1, 3, 0.3},
                                            Pass::kForward, {}));
  run.Set(Operand::kSrc, {std::log(2.0), 0, 0}).SetLabels({0});
  run.operands().rows = 1;
  ASSERT_EQ(run.Execute(), absl::OkStatus());
  ExpectNear(run.Get(Operand::kLoss), {1.2 * std::log(2.0)}, kRounding, kExact,
             "loss");
  ExpectNear(run.Get(Operand::kDiffSrc), {-0.3, 0.15, 0.15}, kRounding, kExact,
             "diff_src");
}

TEST_F(RefBackendTest, SquaredErrorIsAMeanOverRowsAndOutputs) {
  PrimitiveRun run(
      ref_.get(),
      ref_->Create(TargetLossDesc{TargetLossKind::kSquaredError, 3, 2},
                   Pass::kForward, {}));
  run.Set(Operand::kSrc, {1, 3, -1, 0, 7, 7})
      .Set(Operand::kLabels, {1, 1, 0.5, 0, 0, 0});
  run.operands().rows = 2;
  ASSERT_EQ(run.Execute(), absl::OkStatus());
  EXPECT_EQ(run.Get(Operand::kLoss), (Values{(4 + 2.25) / 4}));
  EXPECT_EQ(run.Get(Operand::kDiffSrc), (Values{0, 1, -0.75, 0, 0, 0}));
}

// The exponential of 200 is beyond float; targets may lie between 0 and 1, and
// an output of 0 is on the side of 0.
TEST_F(RefBackendTest, SigmoidCrossEntropyAtKnownPoints) {
  PrimitiveRun run(
      ref_.get(),
      ref_->Create(TargetLossDesc{TargetLossKind::kSigmoidCrossEntropy, 3, 1},
                   Pass::kForward, {}));
  run.Set(Operand::kSrc, {0, 200, 1}).Set(Operand::kLabels, {0.25, 1, 0.75});
  run.operands().rows = 3;
  ASSERT_EQ(run.Execute(), absl::OkStatus());
  const double last = 0.25 + std::log1p(std::exp(-1.0));
  ExpectNear(run.Get(Operand::kLoss), {(std::log(2.0) + last) / 3}, kRounding,
             kExact, "loss");
  EXPECT_EQ(run.Get(Operand::kCorrect), (Values{3}));
  ExpectNear(run.Get(Operand::kDiffSrc),
             {0.25 / 3, 0, (1 / (1 + std::exp(-1.0)) - 0.75) / 3}, kRounding,
             kExact, "diff_src");
}

TEST_F(RefBackendTest, L2PenaltyIsHalfTheSquares) {
  const Shape shape = {2};
  PrimitiveRun run(ref_.get(), ref_->Create(L2PenaltyDesc{0.5, shape},
                                            Pass::kForward, {Layout(shape)}));
  run.Set(Operand::kWeights, {2, 4})
      .Set(Operand::kDiffWeights, {10, 10})
      .Set(Operand::kLoss, {1});
  ASSERT_EQ(run.Execute(), absl::OkStatus());
  EXPECT_EQ(run.Get(Operand::kLoss), (Values{1 + 0.5 * 20 / 2}));
  EXPECT_EQ(run.Get(Operand::kDiffWeights), (Values{11, 12}));
}

}  // namespace
}  // namespace muster
