#include "worker/model/plan_table.h"

#include <memory>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/backend/primitive.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

// Takes what it is told to, and does nothing.
class NamedPrimitive : public Primitive {
 public:
  NamedPrimitive(std::string description, const std::vector<Operand>& operands)
      : description_(std::move(description)) {
    for (const Operand operand : operands) {
      Take(operand, MemoryLayout::RowMajor(FLOAT32, {10}));
    }
  }

  std::string description() const override { return description_; }

 private:
  absl::Status Run(const Operands&) override { return absl::OkStatus(); }

  const std::string description_;
};

void Add(const std::string& layer, const std::string& description,
         const std::vector<Operand>& operands, ExecutionPlan* plan) {
  Instruction instruction;
  instruction.name = layer;
  instruction.primitive =
      std::make_unique<NamedPrimitive>(description, operands);
  plan->instructions.push_back(std::move(instruction));
}

TEST(PlanTableTest, HasALineForEachInstruction) {
  ExecutionPlan plan;
  Add("conv1", "quick",
      {Operand::kSrc, Operand::kDst, Operand::kWorkspace, Operand::kScratch},
      &plan);
  Add("loss", "", {Operand::kSrc, Operand::kLabels, Operand::kDiffSrc}, &plan);
  Add("conv1", "", {Operand::kDiffDst, Operand::kDiffSrc}, &plan);
  Add("conv1", "", {Operand::kDiffDst, Operand::kDiffWeights}, &plan);
  Add("reorder", "", {Operand::kSrc, Operand::kDst}, &plan);
  Add("norm", "", {Operand::kDiffSrc, Operand::kDiffWeights}, &plan);
  Add("conv1/weights", "", {Operand::kLoss, Operand::kDiffWeights}, &plan);
  const std::vector<std::string> lines =
      absl::StrSplit(PlanTable(plan, {"cuda:1"}), '\n');
  EXPECT_THAT(
      lines,
      ElementsAre(
          "layer          device  pass              primitive  memory bytes",
          "conv1          cuda:1  forward           quick                80",
          "loss           cuda:1  loss              -                     0",
          "conv1          cuda:1  backward data     -                     0",
          "conv1          cuda:1  backward weights  -                     0",
          "reorder        cuda:1  backward          -                     0",
          "norm           cuda:1  backward          -                     0",
          "conv1/weights  cuda:1  penalty           -                     0",
          ""));
}

TEST(PlanTableTest, ATransferHasItsDevicesAndBytes) {
  ExecutionPlan plan;
  plan.buffers.resize(2);
  plan.buffers[1].device = 1;
  plan.buffers[1].size_bytes = 40;
  Instruction transfer;
  transfer.name = "transfer";
  transfer.device = 1;
  transfer.operands = {{Operand::kSrc, 0, 0}, {Operand::kDst, 0, 1}};
  plan.instructions.push_back(std::move(transfer));
  EXPECT_THAT(PlanTable(plan, {"cpu:0", "cpu:5"}),
              testing::HasSubstr(
                  "transfer  cpu:5   forward  from cpu:0            40\n"));
  plan.instructions.front().device = 0;
  EXPECT_THAT(PlanTable(plan, {"cpu:0", "cpu:5"}),
              testing::HasSubstr(
                  "transfer  cpu:0   forward  to cpu:5             40\n"));
}

TEST(PlanTableTest, CopiesOfADeviceWithMemoryOfItsOwnAreFromAndToTheHost) {
  ExecutionPlan plan;
  plan.num_devices = 2;
  plan.has_own_memory = {true, false};
  plan.has_host_arena = true;
  plan.buffers.resize(3);
  plan.buffers[0].space = BufferSpace::kParameter;
  plan.buffers[2].device = plan.num_devices;
  for (const auto& [src, dst] : {std::pair{0, 1}, std::pair{1, 2}}) {
    Instruction transfer;
    transfer.name = "transfer";
    transfer.operands = {{Operand::kSrc, 0, src}, {Operand::kDst, 0, dst}};
    plan.instructions.push_back(std::move(transfer));
  }
  EXPECT_THAT(
      PlanTable(plan, {"cuda:0", "cpu:0"}),
      testing::AllOf(testing::HasSubstr("transfer  cuda:0  forward  from host"),
                     testing::HasSubstr("transfer  cuda:0  forward  to host")));
}

}  // namespace
}  // namespace muster
