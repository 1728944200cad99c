#include "worker/executor/plan_executor.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/check_labels.h"
#include "worker/layer/counter_random.h"

namespace muster {
namespace {

// Where a transfer's run lies in the memory of its buffer, which begins with
// the first.
int64_t RunOffset(const PlanBuffer& buffer, int64_t run, int64_t run_bytes) {
  return run * (buffer.runs > 1 ? buffer.stride_bytes : run_bytes);
}

}  // namespace

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

void CopyOnHost(const ExecutionPlan& plan, const Instruction& transfer,
                const Operands& operands) {
  const PlanBuffer& from = plan.buffers[transfer.transferred(Operand::kSrc)];
  const PlanBuffer& to = plan.buffers[transfer.transferred(Operand::kDst)];
  const char* const src = operands.As<const char>(Operand::kSrc);
  char* const dst = operands.As<char>(Operand::kDst);
  const int64_t runs = std::max(from.runs, to.runs);
  const int64_t run_bytes = to.size_bytes / runs;
  for (int64_t i = 0; i < runs; ++i) {
    std::memcpy(dst + RunOffset(to, i, run_bytes),
                src + RunOffset(from, i, run_bytes), run_bytes);
  }
}

absl::Status CheckLabelsOf(const ExecutedModel& model, const Batch& batch) {
  if (model.plan->labels.dtype != INT32) return absl::OkStatus();
  SoftmaxCrossEntropyDesc loss;
  loss.batch = model.batch_size;
  loss.classes = model.num_outputs;
  return NameLayer(CheckLabels(loss, batch.labels().data(), batch.rows),
                   model.plan->instructions[model.schedule->loss_instruction]);
}

void SayIfUnpinned(const DeviceStreams& streams, const Reporter& reporter) {
  const std::string why = streams.unpinned();
  if (why.empty()) return;
  reporter.Info(
      absl::StrCat("host memory is not pinned, so that copies are slower and "
                   "steps wait for them; raise the limit of locked memory "
                   "(ulimit -l) if it is that: ",
                   why));
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
