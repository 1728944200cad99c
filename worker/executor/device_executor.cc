#include "worker/executor/device_executor.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/dtype.h"
#include "worker/model/buffer_placement.h"

namespace muster {

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
  executor->segments_ =
      DivideStep(*model.plan, *model.schedule, model.parameters->sizes_bytes);
  RETURN_IF_ERROR(executor->CreateEvents());
  SayIfUnpinned(*streams, options.reporter);
  return executor;
}

absl::Status DeviceExecutor::Allocate() {
  BufferPlacement placement = PlaceBuffers(*model_.plan);
  arena_offsets_ = std::move(placement.offsets);
  const ParameterPlaces& host = *model_.parameters;
  ASSIGN_OR_RETURN(arena_, streams_->Allocate(placement.arena_bytes[0],
                                              "activations and workspaces"));
  ASSIGN_OR_RETURN(values_,
                   streams_->Allocate(static_cast<int64_t>(host.values.size()),
                                      "parameters"));
  ASSIGN_OR_RETURN(gradients_, streams_->Allocate(
                                   static_cast<int64_t>(host.gradients.size()),
                                   "gradients"));
  RETURN_IF_ERROR(CreateStepBuffers());
  // No result is in a step buffer.
  ASSIGN_OR_RETURN(results_, ResultCopies::Create(
                                 model_.plan,
                                 [this](int buffer) {
                                   return DeviceData(buffer, buffers_.front());
                                 },
                                 streams_));
  return absl::OkStatus();
}

absl::Status DeviceExecutor::CreateStepBuffers() {
  StagingArea::Size size;
  size.rows = model_.batch_size;
  size.example_elements = model_.example_elements;
  size.labels_bytes = model_.plan->labels.size_bytes;
  size.weights_bytes = model_.plan->weights.size_bytes;
  size.seeds = CountSeeds();
  seeds_.resize(size.seeds);
  buffers_.resize(model_.is_training ? 2 : 1);
  for (StepBuffer& step_buffer : buffers_) {
    ASSIGN_OR_RETURN(step_buffer.staging,
                     StagingArea::Create(streams_, &timer_, size));
    BindOperandsToDevice(&step_buffer);
  }
  return absl::OkStatus();
}

absl::StatusOr<DeviceUpdate*> DeviceExecutor::UpdateOnDevice(
    std::unique_ptr<DeviceRule> rule, int num_slots) {
  DeviceUpdate::Options options;
  options.streams = streams_;
  options.places = model_.parameters;
  options.values = reinterpret_cast<float*>(values_->data());
  options.gradients = reinterpret_cast<const float*>(gradients_->data());
  options.timer = &timer_;
  ASSIGN_OR_RETURN(update_,
                   DeviceUpdate::Create(std::move(rule), num_slots, options));
  // Nothing is on its way that would be worth the end of a segment.
  segments_ = DivideStep(
      *model_.plan, *model_.schedule,
      std::vector<int64_t>(model_.parameters->sizes_bytes.size(), 0));
  RETURN_IF_ERROR(CreateEvents());
  return update_.get();
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
    ASSIGN_OR_RETURN(*event, streams_->CreateEvent());
  }
  arrived_.clear();
  arrived_.resize(segments_.size());
  for (size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    if (segment.makes_loss || !segment.gradients.empty() ||
        i + 1 == segments_.size()) {
      ASSIGN_OR_RETURN(arrived_[i], streams_->CreateEvent());
    }
  }
  return absl::OkStatus();
}

int64_t DeviceExecutor::CountSeeds() const {
  return std::count_if(model_.plan->instructions.begin(),
                       model_.plan->instructions.end(),
                       [](const Instruction& i) { return i.is_seeded; });
}

char* DeviceExecutor::DeviceData(int buffer,
                                 const StepBuffer& step_buffer) const {
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
      return step_buffer.staging->device_examples();
    case BufferSpace::kLabels:
      return step_buffer.staging->device_labels();
    case BufferSpace::kWeights:
      return step_buffer.staging->device_weights();
  }
  return nullptr;
}

void DeviceExecutor::BindOperandsToDevice(StepBuffer* step_buffer) const {
  step_buffer->operands =
      BindOperands(*model_.plan, [this, step_buffer](int buffer) {
        return DeviceData(buffer, *step_buffer);
      });
  const uint64_t* seed = step_buffer->staging->device_seeds();
  for (size_t i = 0; i < step_buffer->operands.size(); ++i) {
    if (model_.plan->instructions[i].is_seeded) {
      step_buffer->operands[i].device_seed = seed++;
    }
  }
}

absl::Status DeviceExecutor::Run(const Step& step) {
  if (update_ == nullptr) return RunAlone(step);
  const absl::MutexLock lock(update_->mu());
  return RunAlone(step);
}

absl::Status DeviceExecutor::RunAlone(const Step& step) {
  absl::Status status = RunOnStreams(step);
  has_run_ |= status.ok();
  if (status.ok()) return status;
  // The first error says what happened; what comes after it follows from it.
  streams_->Synchronize().IgnoreError();
  // It may have been a batch that did not arrive.
  for (StepBuffer& step_buffer : buffers_) step_buffer.staging->Forget();
  return status;
}

void DeviceExecutor::Skip(const absl::Status& why) {
  if (mean_ != nullptr) mean_->Join(mean_member_, why).IgnoreError();
}

absl::Status DeviceExecutor::RunOnStreams(const Step& step) {
  absl::Status status = Begin(step);
  if (mean_ != nullptr) status = mean_->Join(mean_member_, status);
  RETURN_IF_ERROR(status);
  status = Compute(step);
  // The others would wait on their devices.
  if (mean_ != nullptr && !status.ok()) mean_->Abort();
  return status;
}

// All that others may have to do with: what comes after it is the device's, if
// others wait for it.
absl::Status DeviceExecutor::Begin(const Step& step) {
  RETURN_IF_ERROR(CheckLabelsOf(model_, step.batch));
  RETURN_IF_ERROR(streams_->MakeCurrent());
  RETURN_IF_ERROR(timer_.Begin(step.trace));
  if (update_ != nullptr) RETURN_IF_ERROR(update_->Flush());
  RETURN_IF_ERROR(TakeStepBuffer(step));
  if (mean_ == nullptr) return absl::OkStatus();
  for (const Segment& segment : segments_) {
    RETURN_IF_ERROR(AwaitParameters(segment.parameters, step.gate));
  }
  return absl::OkStatus();
}

absl::Status DeviceExecutor::Compute(const Step& step) {
  if (use_graphs_ && has_run_ && buffers_[current_].graphs.empty()) Capture();
  ParameterGate* const gate = mean_ == nullptr ? step.gate : nullptr;
  for (size_t i = 0; i < segments_.size(); ++i) {
    RETURN_IF_ERROR(EnqueueSegment(i, gate));
  }
  // The device has all of this step; until it is done the host has time.
  RETURN_IF_ERROR(StageNext(step.next));
  RETURN_IF_ERROR(AwaitDeliveries(step.listener));
  return timer_.Finish();
}

// The other buffer, with the step's batch, which it may have already.
absl::Status DeviceExecutor::TakeStepBuffer(const Step& step) {
  StepBuffer& step_buffer = other_buffer();
  const SeededBatch batch = {&step.batch, step.seed};
  if (!step_buffer.staging->Has(batch))
    RETURN_IF_ERROR(Stage(batch, &step_buffer));
  current_ = &step_buffer - buffers_.data();
  return streams_->Wait(Stream::kCompute, step_buffer.staging->sent());
}

// REQUIRES: the buffer is not that of a step on its way.
absl::Status DeviceExecutor::Stage(const SeededBatch& batch,
                                   StepBuffer* step_buffer) {
  size_t next_seed = 0;
  for (size_t i = 0; i < step_buffer->operands.size(); ++i) {
    step_buffer->operands[i].rows = batch.batch->rows;
    const Instruction& instruction = model_.plan->instructions[i];
    if (instruction.is_seeded) {
      seeds_[next_seed++] = SeedOf(instruction, batch.seed);
    }
  }
  return step_buffer->staging->Send(batch, seeds_);
}

absl::Status DeviceExecutor::StageNext(const SeededBatch& next) {
  if (next.batch == nullptr || buffers_.size() == 1) return absl::OkStatus();
  return Stage(next, &other_buffer());
}

absl::Status DeviceExecutor::SendParameters(absl::Span<const int> parameters,
                                            ParameterGate* gate) {
  const ParameterPlaces& host = *model_.parameters;
  for (const int parameter : parameters) {
    RETURN_IF_ERROR(AwaitParameters({parameter}, gate));
    const int64_t bytes = host.sizes_bytes[parameter];
    RETURN_IF_ERROR(timer_.Time({Stream::kToDevice, "", parameter, bytes}, [&] {
      return streams_->CopyToDevice(values_->data() + host.offsets[parameter],
                                    host.read_from[parameter], bytes);
    }));
  }
  return absl::OkStatus();
}

absl::Status DeviceExecutor::LetComputeWaitForParameters() {
  RETURN_IF_ERROR(streams_->Record(sent_.get(), Stream::kToDevice));
  return streams_->Wait(Stream::kCompute, *sent_);
}

void DeviceExecutor::Capture() {
  auto graphs = TryCapture();
  if (graphs.ok()) {
    buffers_[current_].graphs = *std::move(graphs);
    return;
  }
  use_graphs_ = false;
  for (StepBuffer& step_buffer : buffers_) step_buffer.graphs.clear();
  reporter_.Info(
      absl::StrCat("a step cannot be captured as graphs, each operation is "
                   "launched by itself from now on: ",
                   graphs.status().message()));
}

absl::StatusOr<std::vector<std::unique_ptr<DeviceStreams::Graph>>>
DeviceExecutor::TryCapture() {
  std::vector<std::unique_ptr<Graph>> graphs;
  for (const Segment& segment : segments_) {
    RETURN_IF_ERROR(streams_->BeginCapture());
    const absl::Status executed = ExecuteInstructions(segment);
    // Also to end a capture that has failed.
    auto graph = streams_->EndCapture();
    RETURN_IF_ERROR(executed);
    RETURN_IF_ERROR(graph.status());
    graphs.push_back(*std::move(graph));
  }
  return graphs;
}

absl::Status DeviceExecutor::EnqueueSegment(size_t index, ParameterGate* gate) {
  const Segment& segment = segments_[index];
  if (update_ == nullptr && !segment.parameters.empty()) {
    RETURN_IF_ERROR(SendParameters(segment.parameters, gate));
    RETURN_IF_ERROR(LetComputeWaitForParameters());
  }
  if (segment.changes_loss) {
    RETURN_IF_ERROR(streams_->Wait(Stream::kCompute, *fetched_));
  }
  RETURN_IF_ERROR(ComputeSegment(index));
  if (arrived_[index] == nullptr) return absl::OkStatus();
  return EnqueueDelivery(index);
}

absl::Status DeviceExecutor::ComputeSegment(size_t index) {
  const Segment& segment = segments_[index];
  // The loss is made by the last instruction of a segment.
  const auto loss = static_cast<size_t>(model_.schedule->loss_instruction);
  const char* const name = segment.begin <= loss ? "forward" : "backward";
  return timer_.Time({Stream::kCompute, name}, [&] {
    const StepBuffer& step_buffer = buffers_[current_];
    return step_buffer.graphs.empty()
               ? ExecuteInstructions(segment)
               : streams_->Launch(*step_buffer.graphs[index]);
  });
}

absl::Status DeviceExecutor::ExecuteInstructions(const Segment& segment) {
  for (size_t i = segment.begin; i < segment.end; ++i) {
    RETURN_IF_ERROR(
        Execute(model_.plan->instructions[i], buffers_[current_].operands[i]));
  }
  const bool is_last = segment.end == model_.plan->instructions.size();
  if (update_ == nullptr || !is_last) return absl::OkStatus();
  return update_->EnqueueCheck();
}

absl::Status DeviceExecutor::EnqueueDelivery(size_t index) {
  const Segment& segment = segments_[index];
  RETURN_IF_ERROR(streams_->Record(computed_.get(), Stream::kCompute));
  RETURN_IF_ERROR(streams_->Wait(Stream::kToHost, *computed_));
  if (segment.makes_loss) {
    RETURN_IF_ERROR(
        timer_.Time({Stream::kToHost, "loss", /*tensor=*/-1, sizeof(double)},
                    [this] { return results_->FetchForwardLoss(); }));
    RETURN_IF_ERROR(streams_->Record(fetched_.get(), Stream::kToHost));
  }
  for (const int parameter : segment.gradients) {
    RETURN_IF_ERROR(EnqueueGradient(parameter));
  }
  if (index + 1 == segments_.size()) RETURN_IF_ERROR(EnqueueResults());
  return streams_->Record(arrived_[index].get(), Stream::kToHost);
}

absl::Status DeviceExecutor::EnqueueGradient(int parameter) {
  const ParameterPlaces& host = *model_.parameters;
  char* const device = gradients_->data() + host.offsets[parameter];
  const int64_t bytes = host.sizes_bytes[parameter];
  if (mean_ != nullptr) {
    RETURN_IF_ERROR(timer_.Time({Stream::kToHost, "mean", parameter}, [&] {
      return mean_->Average(mean_member_, reinterpret_cast<float*>(device),
                            bytes / static_cast<int64_t>(sizeof(float)));
    }));
  }
  if (!keeps_mean_ || update_ != nullptr) return absl::OkStatus();
  return timer_.Time({Stream::kToHost, "", parameter, bytes}, [&] {
    return streams_->CopyToHost(host.gradient(parameter), device, bytes);
  });
}

absl::Status DeviceExecutor::EnqueueResults() {
  const int64_t bytes = results_->results_bytes() +
                        (update_ == nullptr ? 0 : update_->check_bytes());
  return timer_.Time({Stream::kToHost, "results", /*tensor=*/-1, bytes}, [&] {
    RETURN_IF_ERROR(results_->FetchResults());
    return update_ == nullptr ? absl::OkStatus() : update_->FetchCheck();
  });
}

absl::Status DeviceExecutor::AwaitDeliveries(StepListener* listener) {
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (arrived_[i] == nullptr) continue;
    RETURN_IF_ERROR(streams_->Await(*arrived_[i]));
    RETURN_IF_ERROR(Tell(segments_[i], listener));
  }
  return absl::OkStatus();
}

absl::Status DeviceExecutor::Tell(const Segment& segment,
                                  StepListener* listener) const {
  if (listener == nullptr) return absl::OkStatus();
  if (segment.makes_loss) {
    RETURN_IF_ERROR(listener->OnForward(results_->forward_loss()));
  }
  for (const int parameter : segment.gradients) {
    listener->OnGradient(parameter);
  }
  return absl::OkStatus();
}

}  // namespace muster
