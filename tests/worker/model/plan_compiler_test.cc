#include "worker/model/plan_compiler.h"

#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

constexpr char kHead[] =
    "layer { name: 'logits' type: 'dense' attr { name: 'units' i: 3 } } "
    "layer { name: 'loss' type: 'softmax_cross_entropy' }";

class PlanCompilerTest : public testing::Test {
 protected:
  ExecutionPlan CompileText(const std::string& text,
                            Phase phase = Phase::kTraining,
                            const std::string& backend = "ref") {
    backend_ = MakeBackend(backend);
    const auto graph = ModelGraph::Create(ParseModel(text));
    EXPECT_THAT(graph, IsOk());
    auto program = LowerModel(*graph, 4, phase);
    EXPECT_THAT(program, IsOk());
    FuseActivations(&*program);
    auto plan =
        CompilePlan(*program, graph->parameters(), {}, {backend_.get()});
    EXPECT_THAT(plan, IsOk());
    return *std::move(plan);
  }

  static int CountNamed(const ExecutionPlan& plan, const std::string& name) {
    int count = 0;
    for (const Instruction& i : plan.instructions) count += i.name == name;
    return count;
  }

  static int CountGradientBuffers(const ExecutionPlan& plan) {
    int count = 0;
    for (const PlanBuffer& buffer : plan.buffers) {
      count += buffer.space == BufferSpace::kGradient;
    }
    return count;
  }

  std::unique_ptr<Backend> backend_;
};

TEST_F(PlanCompilerTest, RefNeedsNoReorder) {
  const ExecutionPlan plan = CompileText(absl::StrCat(
      "input_shape: [2, 6, 6] "
      "layer { name: 'conv' type: 'conv2d' attr { name: 'filters' i: 3 } "
      "attr { name: 'kernel' i: 3 } } "
      "layer { name: 'flatten' type: 'flatten' } ",
      kHead));
  EXPECT_EQ(CountNamed(plan, "reorder"), 0);
  // Four parameters, each written straight to its gradient.
  EXPECT_EQ(CountGradientBuffers(plan), 4);
}

TEST_F(PlanCompilerTest, TheCpuSaysWhatItHasChosen) {
  const ExecutionPlan plan = CompileText(
      absl::StrCat(
          "input_shape: [16, 16, 16] "
          "layer { name: 'conv' type: 'conv2d' attr { name: 'filters' i: 16 } "
          "attr { name: 'kernel' i: 5 } } "
          "layer { name: 'pool' type: 'max_pool' attr { name: 'kernel' i: 2 } "
          "attr { name: 'stride' i: 2 } } "
          "layer { name: 'flatten' type: 'flatten' } ",
          kHead),
      Phase::kTraining, "cpu");
  std::set<std::string> descriptions;
  for (const Instruction& instruction : plan.instructions) {
    const std::string description = instruction.primitive->description();
    EXPECT_EQ(description.empty(), instruction.name == "loss")
        << instruction.name;
    descriptions.insert(description.substr(0, description.find(':')));
  }
  EXPECT_THAT(descriptions, testing::IsSupersetOf({"own Winograd F(2x2, 5x5)",
                                                   "own 2x2 max pool"}));
}

TEST_F(PlanCompilerTest, TheFirstLayerMakesNoGradientOfTheInput) {
  const ExecutionPlan plan =
      CompileText(absl::StrCat("input_shape: [5] ", kHead));
  // Forward, backward of the weights, and nothing else.
  EXPECT_EQ(CountNamed(plan, "logits"), 2);
}

TEST_F(PlanCompilerTest, InferenceRunsForwardOnly) {
  const ExecutionPlan plan =
      CompileText(absl::StrCat("input_shape: [5] ", kHead), Phase::kInference);
  EXPECT_EQ(plan.instructions.size(), 2);
  EXPECT_EQ(CountGradientBuffers(plan), 0);
}

TEST_F(PlanCompilerTest, SumsTheGradientsOfTwoReaders) {
  const ExecutionPlan plan = CompileText(absl::StrCat(
      "input_shape: [5] "
      "layer { name: 'base' type: 'dense' attr { name: 'units' i: 4 } } "
      "layer { name: 'a' type: 'sigmoid' } "
      "layer { name: 'b' type: 'tanh' input: 'base' } "
      "layer { name: 'sum' type: 'add' input: 'a' input: 'b' } ",
      kHead));
  // Forward, the sum, and backward of the weights.
  EXPECT_EQ(CountNamed(plan, "base"), 3);
  // The gradient of an addition is handed on.
  EXPECT_EQ(CountNamed(plan, "sum"), 1);
}

TEST_F(PlanCompilerTest, KeepsBatchStatisticsForTheMovingAverages) {
  const std::string text = absl::StrCat(
      "input_shape: [5] "
      "layer { name: 'base' type: 'dense' attr { name: 'units' i: 4 } } "
      "layer { name: 'norm' type: 'batch_norm' } ",
      kHead);
  const ExecutionPlan plan = CompileText(text);
  ASSERT_EQ(plan.moving_averages.size(), 2);
  for (const MovingAverage& average : plan.moving_averages) {
    EXPECT_TRUE(plan.buffers[average.batch_buffer].live_at_end);
  }
  EXPECT_EQ(plan.moving_averages[0].scale, 1);
  EXPECT_EQ(plan.moving_averages[1].scale, 4.0 / 3);
  EXPECT_TRUE(CompileText(text, Phase::kInference).moving_averages.empty());
}

// How many instructions of this name write gradients of weights, and of data.
struct BackwardCounts {
  int weights = 0;
  int data = 0;
};
BackwardCounts CountBackward(const ExecutionPlan& plan,
                             const std::string& name) {
  BackwardCounts counts;
  for (const Instruction& i : plan.instructions) {
    if (i.name != name) continue;
    counts.weights += i.primitive->takes(Operand::kDiffWeights);
    counts.data += i.primitive->takes(Operand::kDiffSrc);
  }
  return counts;
}

constexpr char kThreeDense[] =
    "input_shape: [6] "
    "layer { name: 'a' type: 'dense' attr { name: 'units' i: 5 } } "
    "layer { name: 'b' type: 'dense' attr { name: 'units' i: 4 } "
    "attr { name: 'l2' f: 0.5 } } ";

TEST_F(PlanCompilerTest, AFrozenPrefixHasNoBackwardPass) {
  for (const std::string backend : {"ref", "cpu"}) {
    const ExecutionPlan plan =
        CompileText(absl::StrCat(kThreeDense, kHead, "freeze_pattern: 'a|b'"),
                    Phase::kTraining, backend);
    for (const std::string layer : {"a", "b"}) {
      EXPECT_EQ(CountNamed(plan, layer), 1) << layer;
    }
    EXPECT_EQ(CountNamed(plan, "b/weights"), 0) << "its penalty";
    EXPECT_EQ(CountBackward(plan, "logits").weights, 1);
    EXPECT_EQ(CountBackward(plan, "logits").data, 0);
    EXPECT_EQ(CountGradientBuffers(plan), 2);
  }
}

TEST_F(PlanCompilerTest, AFrozenLayerBetweenPassesTheGradientOn) {
  const ExecutionPlan plan =
      CompileText(absl::StrCat(kThreeDense, kHead, "freeze_pattern: 'b'"));
  EXPECT_EQ(CountBackward(plan, "b").weights, 0);
  EXPECT_EQ(CountBackward(plan, "b").data, 1);
  EXPECT_EQ(CountBackward(plan, "a").weights, 1);
  EXPECT_EQ(CountGradientBuffers(plan), 4);
}

TEST_F(PlanCompilerTest, AFrozenBatchNormReadsItsAverages) {
  const std::string text =
      "input_shape: [2, 4, 4] layer { name: 'bn' type: 'batch_norm' } "
      "layer { name: 'flatten' type: 'flatten' } ";
  const ExecutionPlan frozen =
      CompileText(absl::StrCat(text, kHead, "freeze_pattern: 'bn'"));
  EXPECT_TRUE(frozen.moving_averages.empty());
  EXPECT_EQ(CountNamed(frozen, "bn"), 1);
  int parameters = 0;
  for (const BoundOperand& operand : frozen.instructions[0].operands) {
    const PlanBuffer& buffer = frozen.buffers[operand.buffer];
    parameters += buffer.space == BufferSpace::kParameter;
  }
  EXPECT_EQ(parameters, 4);
  const ExecutionPlan affine =
      CompileText(absl::StrCat(text, kHead, "freeze_pattern: 'bn/s.*'"));
  EXPECT_EQ(affine.moving_averages.size(), 2);
  EXPECT_EQ(CountNamed(affine, "bn"), 1) << "nothing before it is trained";
}

}  // namespace
}  // namespace muster
