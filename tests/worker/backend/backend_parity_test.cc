// Every backend against the oracle in double, primitive by primitive, on odd
// shapes. A layout that a primitive chooses is used as it is. Convolutions and
// dense layers: backend_parity_products_test.
#include "tests/worker/backend/backend_parity.h"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/worker/backend/primitive_run.h"
#include "worker/backend/backend.h"

namespace muster {
namespace {

TEST_P(BackendParityTest, Activation) {
  for (const ActivationKind kind :
       {ActivationKind::kRelu, ActivationKind::kSigmoid, ActivationKind::kTanh,
        ActivationKind::kLeakyRelu}) {
    for (const Shape& shape : {Shape{3, 17}, Shape{1, 5, 3, 7}}) {
      for (const MemoryLayout& layout : SrcLayouts(shape)) {
        SCOPED_TRACE(layout.ToString());
        const int64_t n = shape.num_elements();
        Values values = RandomValues(n, kSeed);
        for (double& value : values) value *= 4;
        Compare(
            backend_->Create(ActivationDesc{kind}, Pass::kForward, {layout}),
            oracle_->Create(ActivationDesc{kind}, Pass::kForward,
                            {OracleLayout(shape)}),
            {{Operand::kSrc, values}}, {Operand::kDst}, SumTolerance(1));
        Compare(
            backend_->Create(ActivationDesc{kind}, Pass::kBackward, {layout}),
            oracle_->Create(ActivationDesc{kind}, Pass::kBackward,
                            {OracleLayout(shape)}),
            {{Operand::kDst, RandomValues(n, kSeed + 1)},
             {Operand::kDiffDst, RandomValues(n, kSeed + 2)}},
            {Operand::kDiffSrc}, SumTolerance(1));
      }
    }
  }
}

TEST_P(BackendParityTest, ActivationKeepsNan) {
  const Shape shape = {3, 17};
  Values values = RandomValues(shape.num_elements(), kSeed);
  values[20] = std::nan("");
  for (const ActivationKind kind :
       {ActivationKind::kRelu, ActivationKind::kSigmoid, ActivationKind::kTanh,
        ActivationKind::kLeakyRelu}) {
    CompareNan(backend_->Create(ActivationDesc{kind}, Pass::kForward,
                                {MemoryLayout::RowMajor(FLOAT32, shape)}),
               oracle_->Create(ActivationDesc{kind}, Pass::kForward,
                               {OracleLayout(shape)}),
               {{Operand::kSrc, values}});
  }
}

std::vector<PoolDesc> PoolCases() {
  const WindowDesc two = {2, 2, 2, 2, 0, 0, 0, 0};
  const WindowDesc padded = {3, 3, 2, 2, 0, 1, 1, 1};
  const WindowDesc dense = {3, 3, 1, 1, 1, 1, 1, 1};
  const WindowDesc global = {7, 5, 1, 1, 0, 0, 0, 0};
  const PoolKind max = PoolKind::kMax, average = PoolKind::kAverage;
  return {
      {max, 3, 16, 8, 6, two, true},    {max, 3, 16, 8, 6, two, false},
      {max, 1, 17, 7, 9, two, true},    {max, 1, 5, 7, 5, padded, false},
      {max, 3, 16, 7, 5, padded, true}, {max, 1, 3, 6, 6, dense, true},
      {max, 1, 8, 7, 5, global, false}, {average, 3, 16, 8, 6, two, false},
      {average, 1, 17, 7, 5, padded},   {average, 3, 3, 6, 5, dense},
      {average, 3, 17, 7, 5, global},   {max, 1, 1, 2, 2, two, true},
  };
}

TEST_P(BackendParityTest, PoolForwardAndBackward) {
  for (const PoolDesc& d : PoolCases()) {
    for (const MemoryLayout& layout : SrcLayouts(d.src_shape())) {
      SCOPED_TRACE(
          absl::StrCat(layout.ToString(), " to ", d.dst_shape().ToString()));
      const MemoryLayout oracle_layout = OracleLayout(d.src_shape());
      PrimitiveRun found(backend_.get(),
                         backend_->Create(d, Pass::kForward, {layout}));
      PrimitiveRun wanted(oracle_.get(),
                          oracle_->Create(d, Pass::kForward, {oracle_layout}));
      ASSERT_TRUE(found.ok() && wanted.ok());
      const Values src = RandomValues(d.src_shape().num_elements(), kSeed);
      ASSERT_EQ(found.Set(Operand::kSrc, src).Execute(), absl::OkStatus());
      ASSERT_EQ(wanted.Set(Operand::kSrc, src).Execute(), absl::OkStatus());
      const double tolerance =
          SumTolerance(d.window.kernel_h * d.window.kernel_w);
      ExpectNear(found.Get(Operand::kDst), wanted.Get(Operand::kDst), tolerance,
                 kRelative, "dst");

      PrimitiveRun back(backend_.get(),
                        backend_->Create(d, Pass::kBackward, {layout}));
      PrimitiveRun wanted_back(
          oracle_.get(), oracle_->Create(d, Pass::kBackward, {oracle_layout}));
      ASSERT_TRUE(back.ok() && wanted_back.ok());
      const Values diff = RandomValues(d.dst_shape().num_elements(), kSeed + 1);
      back.Share(Operand::kWorkspace, found).Share(Operand::kDst, found);
      wanted_back.Share(Operand::kWorkspace, wanted);
      ASSERT_EQ(back.Set(Operand::kDiffDst, diff).Execute(), absl::OkStatus());
      ASSERT_EQ(wanted_back.Set(Operand::kDiffDst, diff).Execute(),
                absl::OkStatus());
      ExpectNear(back.Get(Operand::kDiffSrc),
                 wanted_back.Get(Operand::kDiffSrc), tolerance, kRelative,
                 "diff_src");
    }
  }
}

// At each of the first 2x2 places, beside infinities.
TEST_P(BackendParityTest, PoolKeepsNan) {
  for (PoolDesc d : PoolCases()) {
    d.phase = Phase::kInference;
    for (const MemoryLayout& layout : SrcLayouts(d.src_shape())) {
      for (const int64_t at : {int64_t{0}, int64_t{1}, d.width, d.width + 1}) {
        SCOPED_TRACE(absl::StrCat(layout.ToString(), " at ", at));
        Values src = RandomValues(d.src_shape().num_elements(), kSeed);
        src[0] = HUGE_VAL;
        src[1] = -HUGE_VAL;
        src[at] = std::nan("");
        CompareNan(
            backend_->Create(d, Pass::kForward, {layout}),
            oracle_->Create(d, Pass::kForward, {OracleLayout(d.src_shape())}),
            {{Operand::kSrc, src}});
      }
    }
  }
}

TEST_P(BackendParityTest, PoolAtInferenceTakesNoWorkspace) {
  for (PoolDesc d : PoolCases()) {
    d.phase = Phase::kInference;
    for (const MemoryLayout& layout : SrcLayouts(d.src_shape())) {
      PrimitiveRun run(backend_.get(),
                       backend_->Create(d, Pass::kForward, {layout}));
      ASSERT_TRUE(run.ok());
      EXPECT_FALSE(run.primitive().takes(Operand::kWorkspace));
      Compare(
          backend_->Create(d, Pass::kForward, {layout}),
          oracle_->Create(d, Pass::kForward, {OracleLayout(d.src_shape())}),
          {{Operand::kSrc, RandomValues(d.src_shape().num_elements(), kSeed)}},
          {Operand::kDst}, SumTolerance(d.window.kernel_h * d.window.kernel_w));
    }
  }
}

TEST_P(BackendParityTest, DropoutDrawsTheOraclesMask) {
  const DropoutDesc d = {0.3, {3, 5, 7, 9}};
  const int64_t n = d.shape.num_elements();
  for (const MemoryLayout& layout : SrcLayouts(d.shape)) {
    PrimitiveRun found(backend_.get(),
                       backend_->Create(d, Pass::kForward, {layout}));
    PrimitiveRun wanted(
        oracle_.get(),
        oracle_->Create(d, Pass::kForward, {OracleLayout(d.shape)}));
    ASSERT_TRUE(found.ok() && wanted.ok());
    const Values src = RandomValues(n, kSeed);
    found.operands().seed = wanted.operands().seed = kSeed;
    ASSERT_EQ(found.Set(Operand::kSrc, src).Execute(), absl::OkStatus());
    ASSERT_EQ(wanted.Set(Operand::kSrc, src).Execute(), absl::OkStatus());
    ExpectNear(found.Get(Operand::kDst), wanted.Get(Operand::kDst), 0,
               kRelative, "dst");

    PrimitiveRun back(backend_.get(),
                      backend_->Create(d, Pass::kBackward, {layout}));
    PrimitiveRun wanted_back(
        oracle_.get(),
        oracle_->Create(d, Pass::kBackward, {OracleLayout(d.shape)}));
    const Values diff = RandomValues(n, kSeed + 1);
    back.Share(Operand::kWorkspace, found).Set(Operand::kDiffDst, diff);
    wanted_back.Share(Operand::kWorkspace, wanted).Set(Operand::kDiffDst, diff);
    ASSERT_EQ(back.Execute(), absl::OkStatus());
    ASSERT_EQ(wanted_back.Execute(), absl::OkStatus());
    ExpectNear(back.Get(Operand::kDiffSrc), wanted_back.Get(Operand::kDiffSrc),
               0, kRelative, "diff_src");
  }
}

TEST_P(BackendParityTest, BatchNorm) {
  for (const Shape& shape :
       {Shape{3, 5, 4, 7}, Shape{4, 17, 3, 3}, Shape{3, 16, 5, 5}}) {
    const BatchNormDesc d = {shape.dim(0), shape.dim(1), shape.dim(2),
                             shape.dim(3)};
    const int64_t n = shape.num_elements(), m = n / d.channels;
    Values variance = RandomValues(d.channels, kSeed + 4);
    for (double& value : variance) value = value * value + 0.25;
    const Inputs forward = {
        {Operand::kSrc, RandomValues(n, kSeed)},
        {Operand::kWeights, RandomValues(d.channels, kSeed + 1)},
        {Operand::kBias, RandomValues(d.channels, kSeed + 2)}};
    Inputs given = forward;
    given.push_back({Operand::kMean, RandomValues(d.channels, kSeed + 3)});
    given.push_back({Operand::kVariance, variance});
    Inputs backward = given;
    backward.erase(backward.begin() + 2);  // the bias
    backward.push_back({Operand::kDiffDst, RandomValues(n, kSeed + 5)});
    BatchNormDesc inference = d;
    inference.phase = Phase::kInference;
    for (const MemoryLayout& layout : SrcLayouts(shape)) {
      SCOPED_TRACE(layout.ToString());
      const MemoryLayout canonical = OracleLayout(shape);
      Compare(backend_->Create(d, Pass::kForward, {layout}),
              oracle_->Create(d, Pass::kForward, {canonical}), forward,
              {Operand::kDst, Operand::kMean, Operand::kVariance},
              SumTolerance(m));
      Compare(backend_->Create(inference, Pass::kForward, {layout}),
              oracle_->Create(inference, Pass::kForward, {canonical}), given,
              {Operand::kDst}, SumTolerance(8));
      // Standardized values reach 4 where the given variance is small.
      Compare(backend_->Create(d, Pass::kBackward, {layout}),
              oracle_->Create(d, Pass::kBackward, {canonical}), backward,
              {Operand::kDiffSrc, Operand::kDiffWeights, Operand::kDiffBias},
              SumTolerance(m, 8));
    }
  }
}

TEST_P(BackendParityTest, LayerNorm) {
  for (const LayerNormDesc& d :
       {LayerNormDesc{1, 2}, LayerNormDesc{3, 17}, LayerNormDesc{5, 260}}) {
    SCOPED_TRACE(d.src_shape().ToString());
    const MemoryLayout layout = SrcLayouts(d.src_shape()).back();
    auto made = backend_->Create(d, Pass::kForward, {layout});
    if (absl::IsUnimplemented(made.status())) GTEST_SKIP() << made.status();
    const MemoryLayout canonical = OracleLayout(d.src_shape());
    const int64_t n = d.src_shape().num_elements();
    const Inputs forward = {
        {Operand::kSrc, RandomValues(n, kSeed)},
        {Operand::kWeights, RandomValues(d.features, kSeed + 1)},
        {Operand::kBias, RandomValues(d.features, kSeed + 2)}};
    // Two values that are near each other have a small variance.
    const double tolerance = SumTolerance(d.features, 8);
    Compare(std::move(made), oracle_->Create(d, Pass::kForward, {canonical}),
            forward, {Operand::kDst, Operand::kMean, Operand::kVariance},
            tolerance);
    LayerNormDesc inference = d;
    inference.phase = Phase::kInference;
    Compare(backend_->Create(inference, Pass::kForward, {layout}),
            oracle_->Create(inference, Pass::kForward, {canonical}), forward,
            {Operand::kDst}, tolerance);
    Values variance = RandomValues(d.batch, kSeed + 4);
    for (double& value : variance) value = value * value + 0.25;
    Compare(backend_->Create(d, Pass::kBackward, {layout}),
            oracle_->Create(d, Pass::kBackward, {canonical}),
            {forward[0],
             forward[1],
             {Operand::kMean, RandomValues(d.batch, kSeed + 3)},
             {Operand::kVariance, variance},
             {Operand::kDiffDst, RandomValues(n, kSeed + 5)}},
            {Operand::kDiffSrc, Operand::kDiffWeights, Operand::kDiffBias},
            tolerance);
  }
}

TEST_P(BackendParityTest, Add) {
  for (const int num_srcs : {1, 2, 3}) {
    const Shape shape = {3, 17, 5, 3};
    for (const MemoryLayout& layout : SrcLayouts(shape)) {
      const std::vector<MemoryLayout> layouts(num_srcs, layout);
      const std::vector<MemoryLayout> canonical(num_srcs, OracleLayout(shape));
      PrimitiveRun found(
          backend_.get(),
          backend_->Create(AddDesc{num_srcs, shape}, Pass::kForward, layouts));
      PrimitiveRun wanted(
          oracle_.get(),
          oracle_->Create(AddDesc{num_srcs, shape}, Pass::kForward, canonical));
      ASSERT_TRUE(found.ok() && wanted.ok());
      for (int i = 0; i < num_srcs; ++i) {
        const Values src = RandomValues(shape.num_elements(), kSeed + i);
        found.Set(Operand::kSrc, src, i);
        wanted.Set(Operand::kSrc, src, i);
      }
      found.Alias(Operand::kDst, Operand::kSrc);
      ASSERT_EQ(found.Execute(), absl::OkStatus());
      ASSERT_EQ(wanted.Execute(), absl::OkStatus());
      ExpectNear(found.Get(Operand::kDst), wanted.Get(Operand::kDst),
                 SumTolerance(num_srcs), kRelative, "dst");
    }
  }
}

std::vector<ConcatDesc> ConcatCases() {
  return {{{{3, 5}, {3, 1}, {3, 17}}},
          {{{3, 16, 4, 5}, {3, 32, 4, 5}}},
          {{{1, 16, 4, 5}, {1, 5, 4, 5}, {1, 16, 4, 5}}}};
}

TEST_P(BackendParityTest, ConcatForwardAndBackward) {
  for (const ConcatDesc& d : ConcatCases()) {
    SCOPED_TRACE(d.dst_shape().ToString());
    std::vector<MemoryLayout> layouts, canonical;
    for (const Shape& src : d.srcs) {
      layouts.push_back(SrcLayouts(src).back());
      canonical.push_back(OracleLayout(src));
    }
    PrimitiveRun found(backend_.get(),
                       backend_->Create(d, Pass::kForward, layouts));
    PrimitiveRun wanted(oracle_.get(),
                        oracle_->Create(d, Pass::kForward, canonical));
    PrimitiveRun back(backend_.get(),
                      backend_->Create(d, Pass::kBackward, layouts));
    ASSERT_TRUE(found.ok() && wanted.ok() && back.ok());
    for (int i = 0; i < static_cast<int>(d.srcs.size()); ++i) {
      const Values src = RandomValues(d.srcs[i].num_elements(), kSeed + i);
      found.Set(Operand::kSrc, src, i);
      wanted.Set(Operand::kSrc, src, i);
    }
    ASSERT_EQ(found.Execute(), absl::OkStatus());
    ASSERT_EQ(wanted.Execute(), absl::OkStatus());
    EXPECT_EQ(found.Get(Operand::kDst), wanted.Get(Operand::kDst));

    // Backward takes apart what forward joined.
    back.Set(Operand::kDiffDst, found.Get(Operand::kDst));
    ASSERT_EQ(back.Execute(), absl::OkStatus());
    for (int i = 0; i < static_cast<int>(d.srcs.size()); ++i) {
      EXPECT_EQ(back.Get(Operand::kDiffSrc, i), found.Get(Operand::kSrc, i));
    }
  }
}

TEST_P(BackendParityTest, SmoothedSoftmaxCrossEntropy) {
  const SoftmaxCrossEntropyDesc d = {5, 17, 0.1};
  PrimitiveRun found(backend_.get(), backend_->Create(d, Pass::kForward, {}));
  PrimitiveRun wanted(oracle_.get(), oracle_->Create(d, Pass::kForward, {}));
  ASSERT_TRUE(found.ok() && wanted.ok());
  for (PrimitiveRun* run : {&found, &wanted}) {
    run->Set(Operand::kSrc, RandomValues(d.src_shape().num_elements(), kSeed))
        .SetLabels({0, 16, 3, 7, 7});
    run->operands().rows = 4;
    ASSERT_EQ(run->Execute(), absl::OkStatus());
  }
  ExpectNear(found.Get(Operand::kLoss), wanted.Get(Operand::kLoss),
             SumTolerance(d.classes), kRelative, "loss");
  ExpectNear(found.Get(Operand::kDiffSrc), wanted.Get(Operand::kDiffSrc),
             SumTolerance(d.classes), kRelative, "diff_src");
}

// Backward and forward, of losses with and without classes.
TEST_P(BackendParityTest, WeightedLosses) {
  const Operation losses[] = {
      SoftmaxCrossEntropyDesc{5, 3, 0.1, Phase::kTraining, /*weighted=*/true},
      SoftmaxCrossEntropyDesc{5, 3, 0, Phase::kInference, /*weighted=*/true},
      TargetLossDesc{TargetLossKind::kSigmoidCrossEntropy, 5, 3,
                     Phase::kTraining, /*weighted=*/true},
      TargetLossDesc{TargetLossKind::kSquaredError, 5, 3, Phase::kTraining,
                     /*weighted=*/true},
      TargetLossDesc{TargetLossKind::kSquaredError, 5, 3, Phase::kInference,
                     /*weighted=*/true}};
  for (const Operation& loss : losses) {
    PrimitiveRun found(backend_.get(),
                       backend_->Create(loss, Pass::kForward, {}));
    PrimitiveRun wanted(oracle_.get(),
                        oracle_->Create(loss, Pass::kForward, {}));
    ASSERT_TRUE(found.ok() && wanted.ok());
    for (PrimitiveRun* run : {&found, &wanted}) {
      run->Set(Operand::kSrc, RandomValues(15, kSeed))
          .Set(Operand::kRowWeights, {0.5, 0, 3, 1.25, 100});
      if (std::holds_alternative<TargetLossDesc>(loss)) {
        run->Set(Operand::kLabels, RandomValues(15, kSeed + 1));
      } else {
        run->SetLabels({0, 2, 1, 1, 0});
      }
      run->operands().rows = 4;
      ASSERT_EQ(run->Execute(), absl::OkStatus());
    }
    ExpectNear(found.Get(Operand::kLoss), wanted.Get(Operand::kLoss),
               SumTolerance(3), kRelative, "loss");
    if (!wanted.primitive().takes(Operand::kDiffSrc)) continue;
    ExpectNear(found.Get(Operand::kDiffSrc), wanted.Get(Operand::kDiffSrc),
               SumTolerance(3), kRelative, "diff_src");
  }
}

TEST_P(BackendParityTest, TargetLoss) {
  for (const auto kind :
       {TargetLossKind::kSigmoidCrossEntropy, TargetLossKind::kSquaredError}) {
    for (const Phase phase : {Phase::kTraining, Phase::kInference}) {
      const TargetLossDesc d = {kind, 5, 3, phase};
      PrimitiveRun found(backend_.get(),
                         backend_->Create(d, Pass::kForward, {}));
      PrimitiveRun wanted(oracle_.get(),
                          oracle_->Create(d, Pass::kForward, {}));
      ASSERT_TRUE(found.ok() && wanted.ok());
      Values src = RandomValues(15, kSeed);
      // Beyond where exp overflows in either direction.
      src[0] = 200;
      src[1] = -200;
      // The first two rows are right, the second by a little.
      Values targets = {1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1};
      targets[2] = src[2] > 0 ? 1 : 0;
      for (int i = 3; i < 6; ++i) targets[i] = src[i] > 0 ? 0.75 : 0.25;
      for (PrimitiveRun* run : {&found, &wanted}) {
        run->Set(Operand::kSrc, src).Set(Operand::kLabels, targets);
        run->operands().rows = 4;
        ASSERT_EQ(run->Execute(), absl::OkStatus());
      }
      ExpectNear(found.Get(Operand::kLoss), wanted.Get(Operand::kLoss),
                 SumTolerance(1), kRelative, "loss");
      if (d.counts_correct()) {
        EXPECT_EQ(found.Get(Operand::kCorrect), wanted.Get(Operand::kCorrect));
      }
      if (phase == Phase::kInference) continue;
      ExpectNear(found.Get(Operand::kDiffSrc), wanted.Get(Operand::kDiffSrc),
                 SumTolerance(1), kRelative, "diff_src");
    }
  }
}

TEST_P(BackendParityTest, SoftmaxCrossEntropy) {
  const SoftmaxCrossEntropyDesc d = {5, 17};
  const std::vector<int32_t> labels = {0, 16, 3, 7, 7};
  for (const int64_t rows : {1, 3, 5}) {
    PrimitiveRun found(backend_.get(), backend_->Create(d, Pass::kForward, {}));
    PrimitiveRun wanted(oracle_.get(), oracle_->Create(d, Pass::kForward, {}));
    ASSERT_TRUE(found.ok() && wanted.ok());
    Values src = RandomValues(d.src_shape().num_elements(), kSeed);
    for (double& value : src)
      value *= 64;  // exp of it overflows if not shifted
    for (PrimitiveRun* run : {&found, &wanted}) {
      run->Set(Operand::kSrc, src).SetLabels(labels);
      run->operands().rows = rows;
      ASSERT_EQ(run->Execute(), absl::OkStatus());
    }
    ExpectNear(found.Get(Operand::kLoss), wanted.Get(Operand::kLoss),
               SumTolerance(1), kRelative, "loss");
    EXPECT_EQ(found.Get(Operand::kCorrect), wanted.Get(Operand::kCorrect));
    ExpectNear(found.Get(Operand::kDiffSrc), wanted.Get(Operand::kDiffSrc),
               SumTolerance(d.classes), kRelative, "diff_src");
  }
}

// Where the largest is looked for, NaN is before all; nor is infinity right.
TEST_P(BackendParityTest, ARowThatIsNotFiniteIsNeverCorrect) {
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    const SoftmaxCrossEntropyDesc classes = {4, 3};
    PrimitiveRun softmax(backend_.get(),
                         backend_->Create(classes, Pass::kForward, {}));
    ASSERT_TRUE(softmax.ok());
    softmax.Set(Operand::kSrc, {bad, bad, bad, bad, 1, 2, 3, bad, 1, 3, 2, 1})
        .SetLabels({0, 2, 0, 0});
    softmax.operands().rows = 4;
    ASSERT_EQ(softmax.Execute(), absl::OkStatus());
    EXPECT_EQ(softmax.Get(Operand::kCorrect), Values{1}) << bad;

    const TargetLossDesc sides = {TargetLossKind::kSigmoidCrossEntropy, 3, 2,
                                  Phase::kInference};
    PrimitiveRun sigmoid(backend_.get(),
                         backend_->Create(sides, Pass::kForward, {}));
    ASSERT_TRUE(sigmoid.ok());
    sigmoid.Set(Operand::kSrc, {bad, -1, 1, bad, 1, -1})
        .Set(Operand::kLabels, {bad > 0 ? 1.0 : 0.0, 0, 1, 0, 1, 0});
    sigmoid.operands().rows = 3;
    ASSERT_EQ(sigmoid.Execute(), absl::OkStatus());
    EXPECT_EQ(sigmoid.Get(Operand::kCorrect), Values{1}) << bad;
  }
}

TEST_P(BackendParityTest, SoftmaxCrossEntropyRefusesBadLabelsAndRows) {
  const SoftmaxCrossEntropyDesc d = {2, 3};
  // Labels are in the device's memory then; who puts them there looks at them.
  if (backend_->streams() != nullptr) return;
  PrimitiveRun run(backend_.get(), backend_->Create(d, Pass::kForward, {}));
  ASSERT_TRUE(run.ok());
  run.Set(Operand::kSrc, RandomValues(6, kSeed)).SetLabels({2, 3});
  run.operands().rows = 1;
  EXPECT_EQ(run.Execute(), absl::OkStatus());
  for (const int64_t rows : {0, 2, 3}) {
    run.operands().rows = rows;
    EXPECT_EQ(run.Execute().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_P(BackendParityTest, L2PenaltyAddsToLossAndGradient) {
  const L2PenaltyDesc d = {0.25, {17, 5, 3, 3}};
  const int64_t n = d.shape.num_elements();
  for (const MemoryLayout& layout : SrcLayouts(d.shape)) {
    Compare(backend_->Create(d, Pass::kForward, {layout}),
            oracle_->Create(d, Pass::kForward, {OracleLayout(d.shape)}),
            {{Operand::kWeights, RandomValues(n, kSeed)},
             {Operand::kDiffWeights, RandomValues(n, kSeed + 1)},
             {Operand::kLoss, {1.5}}},
            {Operand::kLoss, Operand::kDiffWeights}, SumTolerance(1));
  }
}

TEST_P(BackendParityTest, InPlaceGivesTheSameBits) {
  const Shape shape = {3, 17, 5, 3};
  for (const MemoryLayout& layout : SrcLayouts(shape)) {
    PrimitiveRun apart(
        backend_.get(),
        backend_->Create(ActivationDesc(), Pass::kForward, {layout}));
    PrimitiveRun in_place(
        backend_.get(),
        backend_->Create(ActivationDesc(), Pass::kForward, {layout}));
    ASSERT_TRUE(apart.ok() && in_place.ok());
    const Values src = RandomValues(shape.num_elements(), kSeed);
    apart.Set(Operand::kSrc, src);
    in_place.Set(Operand::kSrc, src).Alias(Operand::kDst, Operand::kSrc);
    ASSERT_EQ(apart.Execute(), absl::OkStatus());
    ASSERT_EQ(in_place.Execute(), absl::OkStatus());
    EXPECT_EQ(apart.Bytes(Operand::kDst), in_place.Bytes(Operand::kDst));
  }
}

TEST_P(BackendParityTest, RefusesWhatDoesNotFit) {
  Conv2dDesc conv;
  conv.window.kernel_h = 3;  // on a height of 1 without padding
  EXPECT_EQ(backend_->Create(conv, Pass::kForward, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const MemoryLayout other = MemoryLayout::RowMajor(FLOAT32, {2, 3});
  EXPECT_EQ(backend_->Create(DropoutDesc{0.5, {3, 2}}, Pass::kForward, {other})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(backend_->Create(AddDesc{2, {2, 3}}, Pass::kForward, {other})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(BackendParityTest, MissingOperandIsAnInternalError) {
  auto add = backend_->Create(AddDesc{1, {2, 3}}, Pass::kForward,
                              {MemoryLayout::RowMajor(FLOAT32, {2, 3})});
  ASSERT_TRUE(add.ok());
  EXPECT_EQ((*add)->Execute(Operands()).code(), absl::StatusCode::kInternal);
}

INSTANTIATE_TEST_SUITE_P(Backends, BackendParityTest,
                         testing::ValuesIn(ParityBackends()),
                         BackendParityTest::NameOf);

}  // namespace
}  // namespace muster
