// Every backward primitive of the oracle against central differences of its
// forward, in double: error O(step^2) + epsilon / step, about 1e-10 each.
#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/backend/primitive_run.h"
#include "worker/backend/backend.h"

namespace muster {
namespace {

constexpr uint64_t kSeed = 20150211;
constexpr double kStep = 1e-5;
// A hundred times the error above, for values and derivatives around 1; a
// wrong term is wrong in the first digits.
constexpr double kTolerance = 1e-8;

class GradientTest : public testing::Test {
 protected:
  // EXPECTs that `gradient` is that of objective(x).
  static void ExpectGradient(
      const Values& gradient, Values x,
      const std::function<double(const Values&)>& objective) {
    ASSERT_EQ(gradient.size(), x.size());
    Values measured(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double at = x[i];
      x[i] = at + kStep;
      const double above = objective(x);
      x[i] = at - kStep;
      measured[i] = (above - objective(x)) / (2 * kStep);
      x[i] = at;
    }
    ExpectNear(gradient, measured, kTolerance, kTolerance, "gradient");
  }

  // A loss's own diff_src is the slope of its loss.
  static void ExpectGradientOfLoss(PrimitiveRun& run) {
    run.operands().rows = 3;  // the last row is there but does not count
    ASSERT_EQ(run.Execute(), absl::OkStatus());
    ExpectGradient(run.Get(Operand::kDiffSrc), run.Get(Operand::kSrc),
                   [&](const Values& src) {
                     EXPECT_EQ(run.Set(Operand::kSrc, src).Execute(),
                               absl::OkStatus());
                     return run.Get(Operand::kLoss)[0];
                   });
  }

  // sum(diff_dst * dst): its gradient is what backward makes of diff_dst.
  static double Objective(PrimitiveRun* forward, const Values& diff_dst) {
    EXPECT_EQ(forward->Execute(), absl::OkStatus());
    const Values dst = forward->Get(Operand::kDst);
    return std::inner_product(dst.begin(), dst.end(), diff_dst.begin(), 0.0);
  }

  // Checks `gradient` of forward's operand `operand`.
  static void ExpectGradientOf(PrimitiveRun* forward, Operand operand,
                               const Values& diff_dst, const Values& gradient) {
    const Values x = forward->Get(operand);
    ExpectGradient(gradient, x, [&](const Values& moved) {
      forward->Set(operand, moved);
      return Objective(forward, diff_dst);
    });
    forward->Set(operand, x);
  }

  // Checks the gradients of a normalization of `elements` values with so many
  // weights and biases.
  template <typename Desc>
  void ExpectGradientsOfNorm(const Desc& d, int64_t elements, int64_t weights) {
    const MemoryLayout layout = Layout(d.src_shape());
    PrimitiveRun forward(oracle_.get(),
                         oracle_->Create(d, Pass::kForward, {layout}));
    forward.Set(Operand::kSrc, RandomValues(elements, 1))
        .Set(Operand::kWeights, RandomValues(weights, 2))
        .Set(Operand::kBias, RandomValues(weights, 3));
    ASSERT_EQ(forward.Execute(), absl::OkStatus());
    const Values diff_dst = RandomValues(elements, 4);

    PrimitiveRun backward(oracle_.get(),
                          oracle_->Create(d, Pass::kBackward, {layout}));
    for (const Operand operand : {Operand::kSrc, Operand::kWeights,
                                  Operand::kMean, Operand::kVariance}) {
      backward.Set(operand, forward.Get(operand));
    }
    ASSERT_EQ(backward.Set(Operand::kDiffDst, diff_dst).Execute(),
              absl::OkStatus());
    ExpectGradientOf(&forward, Operand::kSrc, diff_dst,
                     backward.Get(Operand::kDiffSrc));
    ExpectGradientOf(&forward, Operand::kWeights, diff_dst,
                     backward.Get(Operand::kDiffWeights));
    ExpectGradientOf(&forward, Operand::kBias, diff_dst,
                     backward.Get(Operand::kDiffBias));
  }

  // For a primitive with src, weights and bias, all set.
  void ExpectProductGradients(PrimitiveRun* forward, const Values& diff_dst,
                              Backend::Created backward_data,
                              Backend::Created backward_weights) {
    PrimitiveRun data(oracle_.get(), std::move(backward_data));
    data.Set(Operand::kDiffDst, diff_dst)
        .Set(Operand::kWeights, forward->Get(Operand::kWeights));
    ASSERT_EQ(data.Execute(), absl::OkStatus());
    ExpectGradientOf(forward, Operand::kSrc, diff_dst,
                     data.Get(Operand::kDiffSrc));

    PrimitiveRun weights(oracle_.get(), std::move(backward_weights));
    weights.Set(Operand::kDiffDst, diff_dst)
        .Set(Operand::kSrc, forward->Get(Operand::kSrc));
    ASSERT_EQ(weights.Execute(), absl::OkStatus());
    ExpectGradientOf(forward, Operand::kWeights, diff_dst,
                     weights.Get(Operand::kDiffWeights));
    ExpectGradientOf(forward, Operand::kBias, diff_dst,
                     weights.Get(Operand::kDiffBias));
  }

  static MemoryLayout Layout(const Shape& shape) {
    return MemoryLayout::RowMajor(FLOAT64, shape);
  }

  static std::unique_ptr<Backend> MakeOracle() {
    auto oracle = CreateBackend("ref_float64", {});
    EXPECT_TRUE(oracle.ok()) << oracle.status();
    return *std::move(oracle);
  }

  // Values that differ by far more than kStep, also from 0: no maximum and no
  // ReLU changes its mind.
  static Values DistinctValues(int64_t n) {
    Values values(n);
    for (int64_t i = 0; i < n; ++i) values[i] = (i - n / 2 + 0.5) / n;
    std::mt19937_64 random(kSeed);
    std::shuffle(values.begin(), values.end(), random);
    return values;
  }

  const std::unique_ptr<Backend> oracle_ = MakeOracle();
};

TEST_F(GradientTest, Conv2d) {
  const WindowDesc same = {3, 3, 1, 1, 1, 1, 1, 1};
  const WindowDesc uneven = {3, 2, 2, 1, 2, 0, 0, 1};
  for (const Conv2dDesc& d :
       {Conv2dDesc{2, 3, 2, 5, 4, same, true, false},
        Conv2dDesc{2, 3, 2, 5, 4, uneven, true, false},
        Conv2dDesc{2, 4, 6, 5, 4, uneven, true, false, /*groups=*/2}}) {
    PrimitiveRun forward(oracle_.get(), oracle_->Create(d, Pass::kForward, {}));
    forward.Set(Operand::kSrc, RandomValues(d.src_shape().num_elements(), 1))
        .Set(Operand::kWeights,
             RandomValues(d.weights_shape().num_elements(), 2))
        .Set(Operand::kBias, RandomValues(d.dst_channels, 3));
    const Values diff_dst = RandomValues(d.dst_shape().num_elements(), 4);
    ExpectProductGradients(&forward, diff_dst,
                           oracle_->Create(d, Pass::kBackwardData, {}),
                           oracle_->Create(d, Pass::kBackwardWeights, {}));
  }
}

TEST_F(GradientTest, Dense) {
  const DenseDesc d = {3, 5, 4, true, false};
  PrimitiveRun forward(oracle_.get(), oracle_->Create(d, Pass::kForward, {}));
  forward.Set(Operand::kSrc, RandomValues(15, 1))
      .Set(Operand::kWeights, RandomValues(20, 2))
      .Set(Operand::kBias, RandomValues(4, 3));
  const Values diff_dst = RandomValues(12, 4);
  ExpectProductGradients(&forward, diff_dst,
                         oracle_->Create(d, Pass::kBackwardData, {}),
                         oracle_->Create(d, Pass::kBackwardWeights, {}));
}

TEST_F(GradientTest, Activation) {
  const Shape shape = {3, 5};
  for (const ActivationKind kind :
       {ActivationKind::kRelu, ActivationKind::kSigmoid, ActivationKind::kTanh,
        ActivationKind::kLeakyRelu}) {
    PrimitiveRun forward(
        oracle_.get(),
        oracle_->Create(ActivationDesc{kind}, Pass::kForward, {Layout(shape)}));
    forward.Set(Operand::kSrc, DistinctValues(15));
    ASSERT_EQ(forward.Execute(), absl::OkStatus());
    const Values diff_dst = RandomValues(15, 2);

    PrimitiveRun backward(oracle_.get(),
                          oracle_->Create(ActivationDesc{kind}, Pass::kBackward,
                                          {Layout(shape)}));
    backward.Set(Operand::kDst, forward.Get(Operand::kDst))
        .Set(Operand::kDiffDst, diff_dst);
    ASSERT_EQ(backward.Execute(), absl::OkStatus());
    ExpectGradientOf(&forward, Operand::kSrc, diff_dst,
                     backward.Get(Operand::kDiffSrc));
  }
}

TEST_F(GradientTest, Pool) {
  const WindowDesc padded = {3, 2, 2, 1, 1, 1, 0, 1};
  for (const PoolDesc& d :
       {PoolDesc{PoolKind::kMax, 2, 3, 5, 4, padded, false},
        PoolDesc{PoolKind::kMax, 2, 3, 5, 4, padded, true},
        PoolDesc{PoolKind::kAverage, 2, 3, 5, 4, padded, false}}) {
    const MemoryLayout layout = Layout(d.src_shape());
    PrimitiveRun forward(oracle_.get(),
                         oracle_->Create(d, Pass::kForward, {layout}));
    forward.Set(Operand::kSrc, DistinctValues(d.src_shape().num_elements()));
    ASSERT_EQ(forward.Execute(), absl::OkStatus());
    const Values diff_dst = RandomValues(d.dst_shape().num_elements(), 2);

    PrimitiveRun backward(oracle_.get(),
                          oracle_->Create(d, Pass::kBackward, {layout}));
    if (d.kind == PoolKind::kMax) backward.Share(Operand::kWorkspace, forward);
    ASSERT_EQ(backward.Set(Operand::kDiffDst, diff_dst).Execute(),
              absl::OkStatus());
    ExpectGradientOf(&forward, Operand::kSrc, diff_dst,
                     backward.Get(Operand::kDiffSrc));
  }
}

TEST_F(GradientTest, Dropout) {
  const DropoutDesc d = {0.4, {4, 7}};
  PrimitiveRun forward(oracle_.get(),
                       oracle_->Create(d, Pass::kForward, {Layout(d.shape)}));
  forward.operands().seed = kSeed;
  forward.Set(Operand::kSrc, RandomValues(28, 1));
  ASSERT_EQ(forward.Execute(), absl::OkStatus());
  const Values diff_dst = RandomValues(28, 2);

  PrimitiveRun backward(oracle_.get(),
                        oracle_->Create(d, Pass::kBackward, {Layout(d.shape)}));
  backward.Share(Operand::kWorkspace, forward).Set(Operand::kDiffDst, diff_dst);
  ASSERT_EQ(backward.Execute(), absl::OkStatus());
  ExpectGradientOf(&forward, Operand::kSrc, diff_dst,
                   backward.Get(Operand::kDiffSrc));
}

TEST_F(GradientTest, BatchNorm) {
  ExpectGradientsOfNorm(BatchNormDesc{3, 2, 3, 2}, 36, 2);
}

TEST_F(GradientTest, LayerNorm) {
  ExpectGradientsOfNorm(LayerNormDesc{3, 7}, 21, 7);
}

TEST_F(GradientTest, SoftmaxCrossEntropy) {
  for (const double smoothing : {0.0, 0.1}) {
    PrimitiveRun run(oracle_.get(),
                     oracle_->Create(SoftmaxCrossEntropyDesc{4, 5, smoothing},
                                     Pass::kForward, {}));
    run.Set(Operand::kSrc, RandomValues(20, 1)).SetLabels({0, 4, 2, 2});
    ExpectGradientOfLoss(run);
  }
}

TEST_F(GradientTest, WeightedLosses) {
  const Operation losses[] = {
      SoftmaxCrossEntropyDesc{4, 5, 0.1, Phase::kTraining, /*weighted=*/true},
      TargetLossDesc{TargetLossKind::kSquaredError, 4, 5, Phase::kTraining,
                     /*weighted=*/true}};
  for (const Operation& loss : losses) {
    PrimitiveRun run(oracle_.get(), oracle_->Create(loss, Pass::kForward, {}));
    run.Set(Operand::kSrc, RandomValues(20, 1))
        .Set(Operand::kRowWeights, {0.5, 0, 3, 1.25});
    if (std::holds_alternative<TargetLossDesc>(loss)) {
      run.Set(Operand::kLabels, RandomValues(20, 2));
    } else {
      run.SetLabels({0, 4, 2, 2});
    }
    ExpectGradientOfLoss(run);
  }
}

TEST_F(GradientTest, TargetLoss) {
  for (const auto kind :
       {TargetLossKind::kSigmoidCrossEntropy, TargetLossKind::kSquaredError}) {
    PrimitiveRun run(oracle_.get(), oracle_->Create(TargetLossDesc{kind, 4, 5},
                                                    Pass::kForward, {}));
    run.Set(Operand::kSrc, RandomValues(20, 1))
        .Set(Operand::kLabels, RandomValues(20, 2));
    ExpectGradientOfLoss(run);
  }
}

TEST_F(GradientTest, L2Penalty) {
  const Shape shape = {3, 5};
  PrimitiveRun run(oracle_.get(),
                   oracle_->Create(L2PenaltyDesc{0.3, shape}, Pass::kForward,
                                   {Layout(shape)}));
  const auto loss = [&](const Values& weights) {
    run.Set(Operand::kWeights, weights).Set(Operand::kLoss, {0});
    run.Set(Operand::kDiffWeights, Values(15, 0.0));
    EXPECT_EQ(run.Execute(), absl::OkStatus());
    return run.Get(Operand::kLoss)[0];
  };
  const Values weights = RandomValues(15, 1);
  loss(weights);
  ExpectGradient(run.Get(Operand::kDiffWeights), weights, loss);
}

}  // namespace
}  // namespace muster
