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
    if (model.plan->HasOwnMemory(i) || bytes <= limit_bytes) continue;
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

// Those of any device that has some, for what concerns the host's memory alone.
DeviceStreams* AnyStreams(const ExecutedModel& model) {
  for (DeviceStreams* const streams : model.streams) {
    if (streams != nullptr) return streams;
  }
  return nullptr;
}

// The size of the copies of a batch's tensors that devices read.
int64_t BatchBytes(const ExecutedModel& model) {
  return model.batch_size * model.example_elements *
             static_cast<int64_t>(SizeOf(model.dtype)) +
         model.plan->labels.size_bytes + model.plan->weights.size_bytes;
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
    if (buffer.space != BufferSpace::kArena ||
        model.plan->HasOwnMemory(buffer.device)) {
      continue;
    }
    RETURN_IF_ERROR(check(buffer.size_bytes));
  }
  BufferPlacement placement = PlaceBuffers(*model.plan);
  int64_t bytes = AnyStreams(model) == nullptr ? 0 : BatchBytes(model);
  for (size_t i = 0; i < placement.arena_bytes.size(); ++i) {
    if (model.plan->HasOwnMemory(i)) continue;
    bytes += std::min(placement.arena_bytes[i], INT64_MAX - bytes);
    RETURN_IF_ERROR(check(bytes));
  }
  RETURN_IF_ERROR(CheckDevices(model, placement, limits.device_bytes));
  auto executor = absl::WrapUnique(new HostExecutor(model));
  RETURN_IF_ERROR(executor->Allocate(std::move(placement)));
  return executor;
}

HostExecutor::HostExecutor(const ExecutedModel& model)
    : model_(model), device_streams_(AnyStreams(model)) {}

absl::Status HostExecutor::Allocate(BufferPlacement placement) {
  for (size_t i = 0; i < placement.arena_bytes.size(); ++i) {
    arenas_.push_back(AlignedBuffer::OfPages(
        model_.plan->HasOwnMemory(i)
            ? 0
            : static_cast<size_t>(placement.arena_bytes[i])));
  }
  if (model_.dtype == FLOAT64 || !model_.is_training || has_devices()) {
    examples_ = AlignedBuffer::OfPages(
        model_.batch_size * model_.example_elements * SizeOf(model_.dtype));
  }
  const bool has_lanes = model_.plan->num_devices > 1 || has_devices();
  LaneSchedule schedule;
  if (has_lanes) schedule = ScheduleLanes(*model_.plan, placement);
  RETURN_IF_ERROR(CreateDeviceLanes(placement, schedule));
  arena_offsets_ = std::move(placement.offsets);
  operands_ = BindOperands(*model_.plan,
                           [this](int buffer) { return BufferData(buffer); });
  for (size_t i = 0; i < operands_.size(); ++i) {
    operands_[i].elements = model_.plan->instructions[i].elements;
  }
  for (const auto& lane : device_lanes_) {
    if (lane != nullptr) lane->BindSeeds(&operands_);
  }
  if (has_lanes) lanes_ = MakeLanes(std::move(schedule));
  return absl::OkStatus();
}

absl::Status HostExecutor::CreateDeviceLanes(const BufferPlacement& placement,
                                             const LaneSchedule& schedule) {
  device_lanes_.resize(model_.plan->num_devices);
  if (!has_devices()) return absl::OkStatus();
  labels_ = AlignedBuffer::OfPages(model_.plan->labels.size_bytes);
  weights_ = AlignedBuffer::OfPages(model_.plan->weights.size_bytes);
  RETURN_IF_ERROR(PinHostMemory());
  for (size_t i = 0; i < device_lanes_.size(); ++i) {
    if (!model_.plan->HasOwnMemory(i)) continue;
    ASSIGN_OR_RETURN(
        device_lanes_[i],
        DeviceLane::Create(model_.plan, static_cast<int>(i), model_.streams[i],
                           schedule, placement.arena_bytes[i]));
  }
  return absl::OkStatus();
}

absl::Status HostExecutor::PinHostMemory() {
  RETURN_IF_ERROR(device_streams_->MakeCurrent());
  std::vector<absl::Span<char>> memories = {model_.parameters->values,
                                            model_.parameters->gradients};
  for (AlignedBuffer* const own : {&examples_, &labels_, &weights_}) {
    memories.emplace_back(own->data(), own->size_bytes());
  }
  for (AlignedBuffer& arena : arenas_) {
    memories.emplace_back(arena.data(), arena.size_bytes());
  }
  for (const absl::Span<char> memory : memories) {
    ASSIGN_OR_RETURN(auto pin,
                     device_streams_->PinHost(
                         memory.data(), static_cast<int64_t>(memory.size())));
    pins_.push_back(std::move(pin));
  }
  SayIfUnpinned(*device_streams_, model_.reporter);
  return absl::OkStatus();
}

int64_t HostExecutor::HostArenaBytes() const {
  int64_t bytes = 0;
  for (const AlignedBuffer& arena : arenas_) {
    bytes += static_cast<int64_t>(arena.size_bytes());
  }
  return bytes;
}

int64_t HostExecutor::arena_bytes() const {
  int64_t bytes = HostArenaBytes();
  for (const auto& lane : device_lanes_) {
    if (lane != nullptr) bytes += lane->arena_bytes();
  }
  return bytes;
}

int64_t HostExecutor::host_bytes() const {
  return HostArenaBytes() + (has_devices() ? BatchBytes(model_) : 0);
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
      return (model_.plan->HasOwnMemory(where.device)
                  ? device_lanes_[where.device]->arena()
                  : arenas_[where.device].data()) +
             arena_offsets_[buffer];
    case BufferSpace::kInput:
    case BufferSpace::kLabels:
    case BufferSpace::kWeights:
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

const char* HostExecutor::Bound(const BatchTensor* tensor, int64_t rows,
                                AlignedBuffer* copy) const {
  if (tensor == nullptr || !has_devices()) {
    return tensor == nullptr ? nullptr : tensor->storage.data();
  }
  std::memcpy(copy->data(), tensor->storage.data(),
              copy->size_bytes() / model_.batch_size * rows);
  return copy->data();
}

// Points the instructions that read the batch to its memory, or to a copy if
// it is in another type or shorter than they read, or devices copy it.
void HostExecutor::BindBatch(const Batch& batch) {
  const float* examples = batch.input().data();
  const int64_t elements = batch.rows * model_.example_elements;
  const char* input = reinterpret_cast<const char*>(examples);
  if (model_.dtype == FLOAT64) {
    std::copy_n(examples, elements, examples_.as<double>());
    input = examples_.data();
  } else if (batch.rows < model_.batch_size || has_devices()) {
    std::copy_n(examples, elements, examples_.as<float>());
    input = examples_.data();
  }
  const char* labels = Bound(&batch.label_tensor(), batch.rows, &labels_);
  const char* weights = Bound(batch.Find(kBatchWeights), batch.rows, &weights_);
  for (size_t i = 0; i < operands_.size(); ++i) {
    operands_[i].rows = batch.rows;
    for (const BoundOperand& bound : model_.plan->instructions[i].operands) {
      const PlanBuffer& buffer = model_.plan->buffers[bound.buffer];
      if (buffer.space == BufferSpace::kInput) {
        operands_[i].Set(bound.operand,
                         static_cast<const void*>(input + buffer.offset_bytes),
                         bound.index);
      } else if (buffer.space == BufferSpace::kLabels) {
        operands_[i].Set(bound.operand, static_cast<const void*>(labels),
                         bound.index);
      } else if (buffer.space == BufferSpace::kWeights) {
        operands_[i].Set(bound.operand, static_cast<const void*>(weights),
                         bound.index);
      }
    }
  }
}

absl::Status HostExecutor::TellListener(size_t instruction,
                                        StepListener* listener) const {
  if (listener == nullptr) return absl::OkStatus();
  if (instruction == model_.schedule->loss_there_after) {
    const ExecutionPlan& plan = *model_.plan;
    double loss = 0;
    std::memcpy(&loss,
                Result(plan.forward_loss_buffer >= 0 ? plan.forward_loss_buffer
                                                     : plan.loss_buffer),
                sizeof(loss));
    RETURN_IF_ERROR(listener->OnForward(loss));
  }
  for (const int parameter : model_.schedule->final_after[instruction]) {
    listener->OnGradient(parameter);
  }
  return absl::OkStatus();
}

absl::Status HostExecutor::Dispatch(size_t i) {
  const Instruction& instruction = model_.plan->instructions[i];
  DeviceLane* const lane = device_lanes_[instruction.device].get();
  if (lane != nullptr) {
    return NameLayer(lane->Execute(i, operands_[i]), instruction);
  }
  if (!instruction.is_transfer()) return Execute(instruction, operands_[i]);
  CopyOnHost(*model_.plan, instruction, operands_[i]);
  return absl::OkStatus();
}

std::unique_ptr<Lanes> HostExecutor::MakeLanes(LaneSchedule schedule) {
  std::vector<size_t> told;
  for (size_t i = 0; i < model_.plan->instructions.size(); ++i) {
    if (i == model_.schedule->loss_there_after ||
        !model_.schedule->final_after[i].empty()) {
      told.push_back(i);
    }
  }
  LaneWatch watch;
  watch.period = model_.stall_period;
  watch.on_stalled = [this](int lane, size_t i) { SayStalled(lane, i); };
  return std::make_unique<Lanes>(
      std::move(schedule), std::move(told),
      [this](size_t i) { return RunInstruction(i, *step_); }, std::move(watch),
      MakeLateWork());
}

LateWork HostExecutor::MakeLateWork() {
  LateWork late;
  if (!has_devices()) return late;
  late.begin = [this](int device) {
    DeviceLane* const lane = device_lanes_[device].get();
    return lane == nullptr ? absl::OkStatus() : lane->Begin(step_->seed);
  };
  late.finish = [this](size_t i) {
    const Instruction& instruction = model_.plan->instructions[i];
    return NameLayer(device_lanes_[instruction.device]->Finish(i), instruction);
  };
  late.end = [this](int device, bool has_failed) {
    DeviceLane* const lane = device_lanes_[device].get();
    return lane == nullptr ? absl::OkStatus() : lane->End(has_failed);
  };
  return late;
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
  RETURN_IF_ERROR(CheckLossLabels(step.batch));
  BindBatch(step.batch);
  auto times = MeasureEach(step);
  if (times.ok()) return times;
  for (const auto& lane : device_lanes_) {
    if (lane == nullptr || !lane->Begin(step.seed).ok()) continue;
    lane->End(/*has_failed=*/true).IgnoreError();
  }
  return times;
}

absl::StatusOr<std::vector<absl::Duration>> HostExecutor::MeasureEach(
    const Step& step) {
  const Clock& clock = *SystemClock();
  std::vector<absl::Duration> times;
  for (size_t i = 0; i < operands_.size(); ++i) {
    DeviceLane* const lane =
        device_lanes_[model_.plan->instructions[i].device].get();
    if (lane != nullptr) RETURN_IF_ERROR(lane->Begin(step.seed));
    const absl::Time begin = clock.Now();
    RETURN_IF_ERROR(RunInstruction(i, step));
    if (lane != nullptr) RETURN_IF_ERROR(lane->End(/*has_failed=*/false));
    times.push_back(clock.Now() - begin);
  }
  return times;
}

// Where the loss reads them as indices and can tell no error.
absl::Status HostExecutor::CheckLossLabels(const Batch& batch) const {
  const size_t loss = model_.schedule->loss_instruction;
  if (!model_.plan->HasOwnMemory(model_.plan->instructions[loss].device)) {
    return absl::OkStatus();
  }
  return CheckLabelsOf(model_, batch);
}

absl::Status HostExecutor::RunInstruction(size_t i, const Step& step) {
  const Instruction& instruction = model_.plan->instructions[i];
  if (instruction.is_seeded) operands_[i].seed = SeedOf(instruction, step.seed);
  RETURN_IF_ERROR(
      AwaitParameters(model_.schedule->first_used_by[i], step.gate));
  return Dispatch(i);
}

absl::Status HostExecutor::Run(const Step& step) {
  RETURN_IF_ERROR(CheckLossLabels(step.batch));
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
