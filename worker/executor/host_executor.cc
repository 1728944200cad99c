#include "worker/executor/host_executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "common/tensor/dtype.h"
#include "worker/model/device_bytes.h"

namespace muster {

namespace {

// Errors: InvalidArgument naming the device that would hold more than the
// limit.
absl::Status CheckDevices(const ExecutedModel& model,
                          const BufferPlacement& placement,
                          int64_t limit_bytes) {
  const std::vector<int64_t> parameters = ParameterBytes(
      *model.plan, model.parameters->sizes_bytes, model.is_training ? 2 : 1);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t bytes = placement.arena_bytes[i] + parameters[i];
    if (bytes <= limit_bytes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        model.is_training ? "the model wants "
                          : "to evaluate, the model wants ",
        bytes, " bytes of memory of ", model.device_names[i], " (",
        placement.arena_bytes[i], " for activations of ", model.batch_size,
        " rows, ", parameters[i],
        model.is_training ? " for parameters and gradients" : " for parameters",
        "), --device_memory_limit_mb allows ", limit_bytes,
        "; give some layers another device, or take ",
        model.is_training ? "smaller batches"
                          : "a smaller evaluation.batch_size"));
  }
  return absl::OkStatus();
}

// Where a transfer's run lies in the memory of its buffer, which begins with
// the first.
int64_t RunOffset(const PlanBuffer& buffer, int64_t run, int64_t run_bytes) {
  return run * (buffer.runs > 1 ? buffer.stride_bytes : run_bytes);
}

void CopyRuns(const PlanBuffer& from, const char* src, const PlanBuffer& to,
              char* dst) {
  const int64_t runs = std::max(from.runs, to.runs);
  const int64_t run_bytes = to.size_bytes / runs;
  for (int64_t i = 0; i < runs; ++i) {
    std::memcpy(dst + RunOffset(to, i, run_bytes),
                src + RunOffset(from, i, run_bytes), run_bytes);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostExecutor>> HostExecutor::Create(
    const ExecutedModel& model, const MemoryLimits& limits) {
  const auto check = [&](int64_t bytes) {
    return CheckMemory(
        absl::StrCat("the model, with activations of ", model.batch_size,
                     " rows,"),
        limits.taken_bytes + std::min(bytes, INT64_MAX - limits.taken_bytes),
        limits.total_bytes);
  };
  // One by one first: their sum might overflow.
  for (const PlanBuffer& buffer : model.plan->buffers) {
    if (buffer.space != BufferSpace::kArena) continue;
    RETURN_IF_ERROR(check(buffer.size_bytes));
  }
  BufferPlacement placement = PlaceBuffers(*model.plan);
  int64_t bytes = 0;
  for (const int64_t arena : placement.arena_bytes) {
    bytes += std::min(arena, INT64_MAX - bytes);
    RETURN_IF_ERROR(check(bytes));
  }
  RETURN_IF_ERROR(CheckDevices(model, placement, limits.device_bytes));
  return absl::WrapUnique(new HostExecutor(model, std::move(placement)));
}

HostExecutor::HostExecutor(const ExecutedModel& model,
                           BufferPlacement placement)
    : model_(model) {
  for (const int64_t bytes : placement.arena_bytes) {
    arenas_.emplace_back(bytes);
  }
  if (model.plan->num_devices > 1) lanes_ = MakeLanes(placement);
  arena_offsets_ = std::move(placement.offsets);
  if (model.dtype == FLOAT64 || !model.is_training) {
    examples_ = AlignedBuffer(model.batch_size * model.example_elements *
                              SizeOf(model.dtype));
  }
  operands_ = BindOperands(*model.plan,
                           [this](int buffer) { return BufferData(buffer); });
  for (size_t i = 0; i < operands_.size(); ++i) {
    operands_[i].elements = model.plan->instructions[i].elements;
  }
}

void* HostExecutor::BufferData(int buffer) const {
  const PlanBuffer& where = model_.plan->buffers[buffer];
  switch (where.space) {
    case BufferSpace::kParameter:
      // Who reads it changes nothing: Operands::Set.
      return const_cast<char*>(model_.parameters->read_from[where.index]) +
             where.offset_bytes;
    case BufferSpace::kGradient:
      return model_.parameters->gradient(where.index) + where.offset_bytes;
    case BufferSpace::kArena:
      return arenas_[where.device].data() + arena_offsets_[buffer];
    case BufferSpace::kInput:
    case BufferSpace::kLabels:
      return nullptr;
  }
  return nullptr;
}

void HostExecutor::OnParametersMoved() {
  for (size_t i = 0; i < operands_.size(); ++i) {
    for (const BoundOperand& bound : model_.plan->instructions[i].operands) {
      const PlanBuffer& buffer = model_.plan->buffers[bound.buffer];
      if (buffer.space != BufferSpace::kParameter) continue;
      operands_[i].Set(bound.operand, BufferData(bound.buffer), bound.index);
    }
  }
}

// Points the instructions that read the batch to its memory, or to a copy if
// it is in another type or shorter than the primitives read.
void HostExecutor::BindBatch(const Batch& batch) {
  const float* examples = batch.input().data();
  const int64_t elements = batch.rows * model_.example_elements;
  const char* input = reinterpret_cast<const char*>(examples);
  if (model_.dtype == FLOAT64) {
    std::copy_n(examples, elements, examples_.as<double>());
    input = examples_.data();
  } else if (batch.rows < model_.batch_size) {
    std::copy_n(examples, elements, examples_.as<float>());
    input = examples_.data();
  }
  for (size_t i = 0; i < operands_.size(); ++i) {
    operands_[i].rows = batch.rows;
    for (const BoundOperand& bound : model_.plan->instructions[i].operands) {
      const PlanBuffer& buffer = model_.plan->buffers[bound.buffer];
      if (buffer.space == BufferSpace::kInput) {
        operands_[i].Set(bound.operand,
                         static_cast<const void*>(input + buffer.offset_bytes),
                         bound.index);
      } else if (buffer.space == BufferSpace::kLabels) {
        operands_[i].Set(
            bound.operand,
            static_cast<const void*>(batch.label_tensor().storage.data()),
            bound.index);
      }
    }
  }
}

absl::Status HostExecutor::TellListener(size_t instruction,
                                        StepListener* listener) const {
  if (listener == nullptr) return absl::OkStatus();
  if (instruction == model_.schedule->loss_instruction) {
    double loss = 0;
    std::memcpy(&loss, Result(model_.plan->loss_buffer), sizeof(loss));
    RETURN_IF_ERROR(listener->OnForward(loss));
  }
  for (const int parameter : model_.schedule->final_after[instruction]) {
    listener->OnGradient(parameter);
  }
  return absl::OkStatus();
}

absl::Status HostExecutor::Dispatch(const Instruction& instruction,
                                    const Operands& operands) const {
  if (!instruction.is_transfer()) return Execute(instruction, operands);
  const auto buffer_of = [&](Operand role) {
    for (const BoundOperand& bound : instruction.operands) {
      if (bound.operand == role) return bound.buffer;
    }
    return -1;
  };
  const std::vector<PlanBuffer>& buffers = model_.plan->buffers;
  CopyRuns(buffers[buffer_of(Operand::kSrc)],
           operands.As<const char>(Operand::kSrc),
           buffers[buffer_of(Operand::kDst)], operands.As<char>(Operand::kDst));
  return absl::OkStatus();
}

std::unique_ptr<Lanes> HostExecutor::MakeLanes(
    const BufferPlacement& placement) {
  std::vector<size_t> told;
  for (size_t i = 0; i < model_.plan->instructions.size(); ++i) {
    if (i == model_.schedule->loss_instruction ||
        !model_.schedule->final_after[i].empty()) {
      told.push_back(i);
    }
  }
  LaneWatch watch;
  watch.period = model_.stall_period;
  watch.on_stalled = [this](int lane, size_t i) { SayStalled(lane, i); };
  return std::make_unique<Lanes>(
      ScheduleLanes(*model_.plan, placement), std::move(told),
      [this](size_t i) { return RunInstruction(i, *step_); }, std::move(watch));
}

void HostExecutor::SayStalled(int lane, size_t i) const {
  model_.reporter.Warning(absl::StrCat(
      model_.device_names[lane], " has been at layer '",
      model_.plan->instructions[i].name, "' for ",
      absl::FormatDuration(model_.stall_period),
      ", computing or waiting for parameters; the other devices wait for it"));
}

absl::StatusOr<std::vector<absl::Duration>> HostExecutor::Measure(
    const Step& step) {
  BindBatch(step.batch);
  const Clock& clock = *SystemClock();
  std::vector<absl::Duration> times;
  for (size_t i = 0; i < operands_.size(); ++i) {
    const absl::Time begin = clock.Now();
    RETURN_IF_ERROR(RunInstruction(i, step));
    times.push_back(clock.Now() - begin);
  }
  return times;
}

absl::Status HostExecutor::RunInstruction(size_t i, const Step& step) {
  const Instruction& instruction = model_.plan->instructions[i];
  if (instruction.is_seeded) operands_[i].seed = SeedOf(instruction, step.seed);
  RETURN_IF_ERROR(
      AwaitParameters(model_.schedule->first_used_by[i], step.gate));
  return Dispatch(instruction, operands_[i]);
}

absl::Status HostExecutor::Run(const Step& step) {
  BindBatch(step.batch);
  if (lanes_ != nullptr) {
    step_ = &step;
    return lanes_->Run(
        [&](size_t i) { return TellListener(i, step.listener); });
  }
  for (size_t i = 0; i < operands_.size(); ++i) {
    RETURN_IF_ERROR(RunInstruction(i, step));
    RETURN_IF_ERROR(TellListener(i, step.listener));
  }
  return absl::OkStatus();
}

}  // namespace muster
