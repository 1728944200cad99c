#include "worker/executor/plan_executor.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/layer/counter_random.h"

namespace muster {

absl::Status AwaitParameters(absl::Span<const int> parameters,
                             ParameterGate* gate) {
  if (gate == nullptr) return absl::OkStatus();
  for (const int parameter : parameters) {
    RETURN_IF_ERROR(gate->BeforeUse(parameter));
  }
  return absl::OkStatus();
}

std::vector<Operands> BindOperands(
    const ExecutionPlan& plan, absl::FunctionRef<void*(int buffer)> memory_of) {
  std::vector<Operands> operands(plan.instructions.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    for (const BoundOperand& bound : plan.instructions[i].operands) {
      operands[i].Set(bound.operand, memory_of(bound.buffer), bound.index);
    }
  }
  return operands;
}

absl::Status NameLayer(const absl::Status& status,
                       const Instruction& instruction) {
  if (status.ok()) return status;
  return Annotate(status, absl::StrCat("layer '", instruction.name, "'"));
}

absl::Status Execute(const Instruction& instruction, const Operands& operands) {
  return NameLayer(instruction.primitive->Execute(operands), instruction);
}

uint64_t SeedOf(const Instruction& instruction, uint64_t step_seed) {
  return CounterRandom(step_seed, instruction.name).Bits(0);
}

}  // namespace muster
