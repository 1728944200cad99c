#include "worker/executor/pipeline_costs.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two instructions of `a` on device 0, the loss on device 1 and its backward,
// and `a`'s backward.
ExecutionPlan Plan() {
  ExecutionPlan plan;
  plan.num_devices = 2;
  const std::pair<const char*, int> instructions[] = {
      {"a", 0}, {"a", 0}, {"loss", 1}, {"b", 1}, {"a", 0}};
  for (const auto& [name, device] : instructions) {
    Instruction instruction;
    instruction.name = name;
    instruction.device = device;
    plan.instructions.push_back(std::move(instruction));
    plan.instructions.back().operands = {{Operand::kSrc, 0, 0},
                                         {Operand::kDst, 0, 0}};
  }
  plan.buffers.resize(1);
  return plan;
}

PipelineCosts Costs() {
  return FindPipelineCosts(
      Plan(), /*loss_instruction=*/2,
      {absl::Milliseconds(1), absl::Milliseconds(2), absl::Milliseconds(3),
       absl::Milliseconds(4), absl::Milliseconds(5)},
      {});
}

TEST(PipelineCostsTest, SumsByDeviceAndByLayer) {
  const PipelineCosts costs = Costs();
  ASSERT_EQ(costs.devices.size(), 2);
  EXPECT_EQ(costs.devices[0].forward, absl::Milliseconds(3));
  EXPECT_EQ(costs.devices[0].backward, absl::Milliseconds(5));
  EXPECT_EQ(costs.devices[1].total(), absl::Milliseconds(7));
  ASSERT_EQ(costs.layers.size(), 3);
  EXPECT_EQ(costs.layers[0].name, "a");
  EXPECT_EQ(costs.layers[0].backward, absl::Milliseconds(5));
}

TEST(PipelineCostsTest, TheBubbleIsGPipes) {
  EXPECT_EQ(TheoreticalBubble(/*stages=*/2, /*micro_batches=*/1), 0.5);
  EXPECT_EQ(TheoreticalBubble(2, 7), 0.125);
  EXPECT_EQ(TheoreticalBubble(1, 8), 0);
}

TEST(PipelineCostsTest, TheTableSaysTheMostThatCanBeGained) {
  Pipeline pipeline;
  pipeline.micro_batches = 7;
  pipeline.title = "pipeline: 7";
  pipeline.stages = {{0, {"a"}}, {1, {"b", "loss"}}};
  EXPECT_THAT(PipelineTable(pipeline, Costs(), {"cpu:0", "cpu:1"}),
              AllOf(HasSubstr("pipeline: 7\n"), HasSubstr("0.125"),
                    HasSubstr("all stages 15.00 ms, the slowest 8.00 ms: at "
                              "most 1.88 times as fast"),
                    HasSubstr("b to loss\n")));
}

}  // namespace
}  // namespace muster
