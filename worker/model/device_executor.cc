#include "worker/model/device_executor.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/dtype.h"
#include "worker/backend/check_labels.h"
#include "worker/model/buffer_placement.h"

namespace muster {
namespace {

using EventUse = DeviceStreams::EventUse;

// The first instruction after the one that makes the loss that touches it; the
// number of instructions if there is none.
size_t FindLossChange(const ExecutionPlan& plan, size_t loss_instruction) {
  for (size_t i = loss_instruction + 1; i < plan.instructions.size(); ++i) {
    for (const BoundOperand& bound : plan.instructions[i].operands) {
      if (bound.buffer == plan.loss_buffer) return i;
    }
  }
  return plan.instructions.size();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceExecutor>> DeviceExecutor::Create(
    const ExecutedModel& model, DeviceStreams* streams,
    const Options& options) {
  if (model.dtype != FLOAT32) {
    return absl::UnimplementedError(
        absl::StrCat("compile a model for a device with memory of its own: it "
                     "computes in ",
                     DataTypeName(model.dtype), ", only float32 is there"));
  }
  auto executor = absl::WrapUnique(new DeviceExecutor(model, streams, options));
  RETURN_IF_ERROR(streams->MakeCurrent());
  RETURN_IF_ERROR(executor->Allocate());
  RETURN_IF_ERROR(executor->PinParameters());
  RETURN_IF_ERROR(executor->CreateEvents());
  RETURN_IF_ERROR(executor->PlanDeliveries());
  executor->BindOperandsToDevice();
  return executor;
}

absl::Status DeviceExecutor::Allocate() {
  BufferPlacement placement = PlaceBuffers(*model_.plan);
  arena_offsets_ = std::move(placement.offsets);
  const ParameterPlaces& host = *model_.parameters;
  ASSIGN_OR_RETURN(arena_, streams_->Allocate(placement.arena_bytes,
                                              "activations and workspaces"));
  ASSIGN_OR_RETURN(values_,
                   streams_->Allocate(static_cast<int64_t>(host.values.size()),
                                      "parameters"));
  ASSIGN_OR_RETURN(gradients_, streams_->Allocate(
                                   static_cast<int64_t>(host.gradients.size()),
                                   "gradients"));
  ASSIGN_OR_RETURN(
      staging_,
      StagingArea::Create(streams_, {model_.batch_size, model_.example_elements,
                                     CountSeeds()}));
  ASSIGN_OR_RETURN(
      results_,
      ResultCopies::Create(
          model_.plan, [this](int buffer) { return DeviceData(buffer); },
          streams_));
  return absl::OkStatus();
}

absl::Status DeviceExecutor::PinParameters() {
  const ParameterPlaces& host = *model_.parameters;
  ASSIGN_OR_RETURN(pinned_values_,
                   streams_->PinHost(host.values.data(),
                                     static_cast<int64_t>(host.values.size())));
  ASSIGN_OR_RETURN(
      pinned_gradients_,
      streams_->PinHost(host.gradients.data(),
                        static_cast<int64_t>(host.gradients.size())));
  return absl::OkStatus();
}

absl::Status DeviceExecutor::CreateEvents() {
  for (std::unique_ptr<Event>* event : {&sent_, &computed_, &fetched_}) {
    ASSIGN_OR_RETURN(*event, streams_->CreateEvent(EventUse::kStreams));
  }
  for (std::unique_ptr<Event>* event : {&finished_, &launched_}) {
    ASSIGN_OR_RETURN(*event, streams_->CreateEvent(EventUse::kHost));
  }
  return absl::OkStatus();
}

absl::Status DeviceExecutor::PlanDeliveries() {
  const StepSchedule& schedule = *model_.schedule;
  changes_loss_ = FindLossChange(*model_.plan, schedule.loss_instruction);
  // Nobody hears of an evaluation before its end.
  if (!model_.is_training) return absl::OkStatus();
  for (size_t i = 0; i < schedule.final_after.size(); ++i) {
    Delivery delivery;
    delivery.after = i;
    delivery.has_loss = i == schedule.loss_instruction;
    delivery.gradients = schedule.final_after[i];
    if (!delivery.has_loss && delivery.gradients.empty()) continue;
    ASSIGN_OR_RETURN(delivery.arrived, streams_->CreateEvent(EventUse::kHost));
    deliveries_.push_back(std::move(delivery));
  }
  return absl::OkStatus();
}

int64_t DeviceExecutor::CountSeeds() const {
  return std::count_if(model_.plan->instructions.begin(),
                       model_.plan->instructions.end(),
                       [](const Instruction& i) { return i.is_seeded; });
}

char* DeviceExecutor::DeviceData(int buffer) const {
  const PlanBuffer& where = model_.plan->buffers[buffer];
  const std::vector<int64_t>& offsets = model_.parameters->offsets;
  switch (where.space) {
    case BufferSpace::kParameter:
      return values_->data() + offsets[where.index];
    case BufferSpace::kGradient:
      return gradients_->data() + offsets[where.index];
    case BufferSpace::kArena:
      return arena_->data() + arena_offsets_[buffer];
    case BufferSpace::kInput:
      return staging_->device_examples();
    case BufferSpace::kLabels:
      return staging_->device_labels();
  }
  return nullptr;
}

void DeviceExecutor::BindOperandsToDevice() {
  operands_ = BindOperands(*model_.plan,
                           [this](int buffer) { return DeviceData(buffer); });
  const uint64_t* seed = staging_->device_seeds();
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (model_.plan->instructions[i].is_seeded) {
      operands_[i].device_seed = seed++;
    }
  }
}

// The loss reads labels as indices, where no error can be told.
absl::Status DeviceExecutor::CheckLabelsOf(const Batch& batch) const {
  SoftmaxCrossEntropyDesc loss;
  loss.batch = model_.batch_size;
  loss.classes = model_.num_classes;
  return NameLayer(
      CheckLabels(loss, batch.labels.data(), batch.rows),
      model_.plan->instructions[model_.schedule->loss_instruction]);
}

absl::Status DeviceExecutor::Run(const Step& step) {
  absl::Status status = RunOnStreams(step);
  has_run_ |= status.ok();
  // The first error says what happened; what comes after it follows from it.
  if (!status.ok()) streams_->Synchronize().IgnoreError();
  return status;
}

void DeviceExecutor::Skip(const absl::Status& why) {
  if (mean_ != nullptr) mean_->Join(mean_member_, why).IgnoreError();
}

absl::Status DeviceExecutor::RunOnStreams(const Step& step) {
  const bool all_parameters = mean_ != nullptr || (use_graphs_ && has_run_);
  absl::Status status = Begin(step, all_parameters);
  if (mean_ != nullptr) status = mean_->Join(mean_member_, status);
  RETURN_IF_ERROR(status);
  status = Compute(step, all_parameters);
  // The others would wait on their devices.
  if (mean_ != nullptr && !status.ok()) mean_->Abort();
  return status;
}

// All that others may have to do with: what comes after it is the device's.
absl::Status DeviceExecutor::Begin(const Step& step, bool all_parameters) {
  RETURN_IF_ERROR(CheckLabelsOf(step.batch));
  RETURN_IF_ERROR(streams_->MakeCurrent());
  RETURN_IF_ERROR(SendInputs(step));
  if (!all_parameters) return absl::OkStatus();
  for (const std::vector<int>& parameters : model_.schedule->first_used_by) {
    RETURN_IF_ERROR(SendParameters(parameters, step.gate));
  }
  return LetComputeWaitForInputs();
}

absl::Status DeviceExecutor::Compute(const Step& step, bool has_parameters) {
  if (has_parameters) {
    RETURN_IF_ERROR(EnqueueCaptured());
  } else {
    RETURN_IF_ERROR(EnqueueInstructions([&](size_t instruction) {
      const std::vector<int>& read_first =
          model_.schedule->first_used_by[instruction];
      if (read_first.empty()) return absl::OkStatus();
      RETURN_IF_ERROR(SendParameters(read_first, step.gate));
      return LetComputeWaitForInputs();
    }));
  }
  if (has_parameters && graph_ != nullptr) {
    RETURN_IF_ERROR(streams_->Record(launched_.get(), Stream::kCompute));
    RETURN_IF_ERROR(streams_->Await(*launched_));
    for (const Delivery& delivery : deliveries_) {
      RETURN_IF_ERROR(Tell(delivery, step.listener));
    }
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(AwaitDeliveries(step.listener));
  return streams_->Await(*finished_);
}

absl::Status DeviceExecutor::SendInputs(const Step& step) {
  staging_->SetBatch(step.batch);
  size_t next_seed = 0;
  for (size_t i = 0; i < operands_.size(); ++i) {
    operands_[i].rows = step.batch.rows;
    const Instruction& instruction = model_.plan->instructions[i];
    if (!instruction.is_seeded) continue;
    staging_->seeds()[next_seed++] = SeedOf(instruction, step.seed);
  }
  RETURN_IF_ERROR(staging_->Send());
  return LetComputeWaitForInputs();
}

absl::Status DeviceExecutor::SendParameters(absl::Span<const int> parameters,
                                            ParameterGate* gate) {
  RETURN_IF_ERROR(AwaitParameters(parameters, gate));
  const ParameterPlaces& host = *model_.parameters;
  for (const int parameter : parameters) {
    RETURN_IF_ERROR(streams_->CopyToDevice(
        values_->data() + host.offsets[parameter], host.read_from[parameter],
        host.sizes_bytes[parameter]));
  }
  return absl::OkStatus();
}

absl::Status DeviceExecutor::LetComputeWaitForInputs() {
  RETURN_IF_ERROR(streams_->Record(sent_.get(), Stream::kToDevice));
  return streams_->Wait(Stream::kCompute, *sent_);
}

// The inputs are on the device, or on their way, outside of the graph.
absl::Status DeviceExecutor::EnqueueCaptured() {
  if (use_graphs_ && has_run_ && graph_ == nullptr) Capture();
  if (graph_ != nullptr) return streams_->Launch(*graph_);
  return EnqueueInstructions([](size_t) { return absl::OkStatus(); });
}

void DeviceExecutor::Capture() {
  auto graph = TryCapture();
  if (graph.ok()) {
    graph_ = *std::move(graph);
    return;
  }
  use_graphs_ = false;
  if (say_ == nullptr) return;
  say_(
      absl::StrCat("a step cannot be captured as a graph, each operation is "
                   "launched by itself from now on: ",
                   graph.status().message()));
}

absl::StatusOr<std::unique_ptr<DeviceStreams::Graph>>
DeviceExecutor::TryCapture() {
  RETURN_IF_ERROR(streams_->BeginCapture());
  const absl::Status enqueued =
      EnqueueInstructions([](size_t) { return absl::OkStatus(); });
  // Also to end a capture that has failed.
  auto graph = streams_->EndCapture();
  RETURN_IF_ERROR(enqueued);
  return graph;
}

absl::Status DeviceExecutor::EnqueueInstructions(Before before) {
  auto delivery = deliveries_.begin();
  for (size_t i = 0; i < operands_.size(); ++i) {
    RETURN_IF_ERROR(before(i));
    if (i == changes_loss_ && !deliveries_.empty()) {
      RETURN_IF_ERROR(streams_->Wait(Stream::kCompute, *fetched_));
    }
    RETURN_IF_ERROR(Execute(model_.plan->instructions[i], operands_[i]));
    if (delivery == deliveries_.end() || delivery->after != i) continue;
    RETURN_IF_ERROR(EnqueueDelivery(*delivery++));
  }
  return EnqueueResults();
}

absl::Status DeviceExecutor::EnqueueDelivery(const Delivery& delivery) {
  RETURN_IF_ERROR(streams_->Record(computed_.get(), Stream::kCompute));
  RETURN_IF_ERROR(streams_->Wait(Stream::kToHost, *computed_));
  if (delivery.has_loss) {
    RETURN_IF_ERROR(results_->FetchForwardLoss());
    RETURN_IF_ERROR(streams_->Record(fetched_.get(), Stream::kToHost));
  }
  for (const int parameter : delivery.gradients) {
    RETURN_IF_ERROR(EnqueueGradient(parameter));
  }
  return streams_->Record(delivery.arrived.get(), Stream::kToHost);
}

absl::Status DeviceExecutor::EnqueueGradient(int parameter) {
  const ParameterPlaces& host = *model_.parameters;
  char* const device = gradients_->data() + host.offsets[parameter];
  const int64_t bytes = host.sizes_bytes[parameter];
  if (mean_ != nullptr) {
    RETURN_IF_ERROR(
        mean_->Average(mean_member_, reinterpret_cast<float*>(device),
                       bytes / static_cast<int64_t>(sizeof(float))));
  }
  if (!keeps_mean_) return absl::OkStatus();
  return streams_->CopyToHost(host.gradient(parameter), device, bytes);
}

// At the end kCompute waits for kToHost, as a capture wants it.
absl::Status DeviceExecutor::EnqueueResults() {
  RETURN_IF_ERROR(streams_->Record(computed_.get(), Stream::kCompute));
  RETURN_IF_ERROR(streams_->Wait(Stream::kToHost, *computed_));
  RETURN_IF_ERROR(results_->FetchResults());
  RETURN_IF_ERROR(streams_->Record(finished_.get(), Stream::kToHost));
  RETURN_IF_ERROR(streams_->Record(fetched_.get(), Stream::kToHost));
  return streams_->Wait(Stream::kCompute, *fetched_);
}

absl::Status DeviceExecutor::AwaitDeliveries(StepListener* listener) {
  for (const Delivery& delivery : deliveries_) {
    RETURN_IF_ERROR(streams_->Await(*delivery.arrived));
    RETURN_IF_ERROR(Tell(delivery, listener));
  }
  return absl::OkStatus();
}

absl::Status DeviceExecutor::Tell(const Delivery& delivery,
                                  StepListener* listener) const {
  if (listener == nullptr) return absl::OkStatus();
  if (delivery.has_loss) {
    RETURN_IF_ERROR(listener->OnForward(results_->forward_loss()));
  }
  for (const int parameter : delivery.gradients) {
    listener->OnGradient(parameter);
  }
  return absl::OkStatus();
}

}  // namespace muster
