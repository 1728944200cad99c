#include "worker/executor/step_schedule.h"

#include <algorithm>
#include <limits>

namespace muster {
namespace {

void FindFirstUses(const ExecutionPlan& plan, size_t num_parameters,
                   StepSchedule* schedule) {
  std::vector<bool> used(num_parameters, false);
  schedule->first_used_by.resize(plan.instructions.size());
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    for (const BoundOperand& bound : plan.instructions[i].operands) {
      const PlanBuffer& buffer = plan.buffers[bound.buffer];
      if (buffer.space != BufferSpace::kParameter || used[buffer.index]) {
        continue;
      }
      used[buffer.index] = true;
      schedule->first_used_by[i].push_back(buffer.index);
    }
  }
}

// The first instruction that touches the buffer; 0 if there is none.
size_t FirstTouch(const ExecutionPlan& plan, int buffer) {
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    for (const BoundOperand& bound : plan.instructions[i].operands) {
      if (bound.buffer == buffer) return i;
    }
  }
  return 0;
}

// A copy of it comes right after it.
void FindLoss(const ExecutionPlan& plan, StepSchedule* schedule) {
  schedule->loss_instruction = FirstTouch(plan, plan.loss_buffer);
  schedule->loss_there_after = schedule->loss_instruction;
  if (plan.forward_loss_buffer < 0) return;
  schedule->loss_there_after = FirstTouch(plan, plan.forward_loss_buffer);
  const Instruction& copy = plan.instructions[schedule->loss_there_after];
  schedule->loss_instruction =
      FirstTouch(plan, copy.transferred(Operand::kSrc));
}

// A gradient is final after the last instruction that touches its buffer: the
// sum over all uses, or the penalty that is added to it.
void FindFinalWrites(const ExecutionPlan& plan, size_t num_parameters,
                     StepSchedule* schedule) {
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  std::vector<size_t> last_write(num_parameters, kNone);
  std::vector<size_t> last_read(num_parameters, 0);
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    for (const BoundOperand& bound : plan.instructions[i].operands) {
      const PlanBuffer& buffer = plan.buffers[bound.buffer];
      if (buffer.space == BufferSpace::kGradient) last_write[buffer.index] = i;
      if (buffer.space == BufferSpace::kParameter) last_read[buffer.index] = i;
    }
  }
  schedule->final_after.resize(plan.instructions.size());
  for (size_t parameter = 0; parameter < num_parameters; ++parameter) {
    if (last_write[parameter] == kNone) continue;
    const size_t last = std::max(last_write[parameter], last_read[parameter]);
    schedule->final_after[last].push_back(static_cast<int>(parameter));
  }
}

void FindAverages(const ExecutionPlan& plan, StepSchedule* schedule) {
  std::vector<int>& averaged = schedule->averaged_parameters;
  for (const MovingAverage& average : plan.moving_averages) {
    if (std::find(averaged.begin(), averaged.end(), average.parameter) ==
        averaged.end()) {
      averaged.push_back(average.parameter);
    }
  }
}

}  // namespace

StepSchedule ScheduleStep(const ExecutionPlan& plan, size_t num_parameters) {
  StepSchedule schedule;
  FindFirstUses(plan, num_parameters, &schedule);
  FindLoss(plan, &schedule);
  FindFinalWrites(plan, num_parameters, &schedule);
  FindAverages(plan, &schedule);
  return schedule;
}

}  // namespace muster
