#include "worker/executor/device_executor.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/dtype.h"
#include "worker/backend/check_labels.h"
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
  executor->stretches_ =
      DivideStep(*model.plan, *model.schedule, model.parameters->sizes_bytes);
  RETURN_IF_ERROR(executor->CreateEvents());
  executor->SayIfUnpinned();
  return executor;
}

void DeviceExecutor::SayIfUnpinned() const {
  const std::string why = streams_->unpinned();
  if (why.empty() || say_ == nullptr) return;
  say_(
      absl::StrCat("host memory is not pinned, so that copies are slower and "
                   "steps wait for them; raise the limit of locked memory "
                   "(ulimit -l) if it is that: ",
                   why));
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
  RETURN_IF_ERROR(CreateSides());
  // No result is in a side.
  ASSIGN_OR_RETURN(results_, ResultCopies::Create(
                                 model_.plan,
                                 [this](int buffer) {
                                   return DeviceData(buffer, sides_.front());
                                 },
                                 streams_));
  return absl::OkStatus();
}

absl::Status DeviceExecutor::CreateSides() {
  StagingArea::Size size;
  size.rows = model_.batch_size;
  size.example_elements = model_.example_elements;
  size.seeds = CountSeeds();
  seeds_.resize(size.seeds);
  sides_.resize(model_.is_training ? 2 : 1);
  for (Side& side : sides_) {
    ASSIGN_OR_RETURN(side.staging,
                     StagingArea::Create(streams_, &timer_, size));
    BindOperandsToDevice(&side);
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
  // Nothing is on its way that would be worth the end of a stretch.
  stretches_ = DivideStep(
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
  arrived_.resize(stretches_.size());
  for (size_t i = 0; i < stretches_.size(); ++i) {
    const Stretch& stretch = stretches_[i];
    if (stretch.makes_loss || !stretch.gradients.empty() ||
        i + 1 == stretches_.size()) {
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

char* DeviceExecutor::DeviceData(int buffer, const Side& side) const {
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
      return side.staging->device_examples();
    case BufferSpace::kLabels:
      return side.staging->device_labels();
  }
  return nullptr;
}

void DeviceExecutor::BindOperandsToDevice(Side* side) const {
  side->operands = BindOperands(*model_.plan, [this, side](int buffer) {
    return DeviceData(buffer, *side);
  });
  const uint64_t* seed = side->staging->device_seeds();
  for (size_t i = 0; i < side->operands.size(); ++i) {
    if (model_.plan->instructions[i].is_seeded) {
      side->operands[i].device_seed = seed++;
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
  for (Side& side : sides_) side.staging->Forget();
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
  RETURN_IF_ERROR(CheckLabelsOf(step.batch));
  RETURN_IF_ERROR(streams_->MakeCurrent());
  RETURN_IF_ERROR(timer_.Begin(step.trace));
  if (update_ != nullptr) RETURN_IF_ERROR(update_->Flush());
  RETURN_IF_ERROR(TakeSide(step));
  if (mean_ == nullptr) return absl::OkStatus();
  for (const Stretch& stretch : stretches_) {
    RETURN_IF_ERROR(AwaitParameters(stretch.parameters, step.gate));
  }
  return absl::OkStatus();
}

absl::Status DeviceExecutor::Compute(const Step& step) {
  if (use_graphs_ && has_run_ && sides_[side_].graphs.empty()) Capture();
  ParameterGate* const gate = mean_ == nullptr ? step.gate : nullptr;
  for (size_t i = 0; i < stretches_.size(); ++i) {
    RETURN_IF_ERROR(EnqueueStretch(i, gate));
  }
  // The device has all of this step; until it is done the host has time.
  RETURN_IF_ERROR(StageNext(step.next));
  RETURN_IF_ERROR(AwaitDeliveries(step.listener));
  return timer_.Finish();
}

// The other side, with the step's batch, which it may have already.
absl::Status DeviceExecutor::TakeSide(const Step& step) {
  Side& side = other_side();
  const SeededBatch batch = {&step.batch, step.seed};
  if (!side.staging->Has(batch)) RETURN_IF_ERROR(Stage(batch, &side));
  side_ = &side - sides_.data();
  return streams_->Wait(Stream::kCompute, side.staging->sent());
}

// REQUIRES: the side is not that of a step on its way.
absl::Status DeviceExecutor::Stage(const SeededBatch& batch, Side* side) {
  size_t next_seed = 0;
  for (size_t i = 0; i < side->operands.size(); ++i) {
    side->operands[i].rows = batch.batch->rows;
    const Instruction& instruction = model_.plan->instructions[i];
    if (instruction.is_seeded) {
      seeds_[next_seed++] = SeedOf(instruction, batch.seed);
    }
  }
  return side->staging->Send(batch, seeds_);
}

absl::Status DeviceExecutor::StageNext(const SeededBatch& next) {
  if (next.batch == nullptr || sides_.size() == 1) return absl::OkStatus();
  return Stage(next, &other_side());
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
    sides_[side_].graphs = *std::move(graphs);
    return;
  }
  use_graphs_ = false;
  for (Side& side : sides_) side.graphs.clear();
  if (say_ == nullptr) return;
  say_(
      absl::StrCat("a step cannot be captured as graphs, each operation is "
                   "launched by itself from now on: ",
                   graphs.status().message()));
}

absl::StatusOr<std::vector<std::unique_ptr<DeviceStreams::Graph>>>
DeviceExecutor::TryCapture() {
  std::vector<std::unique_ptr<Graph>> graphs;
  for (const Stretch& stretch : stretches_) {
    RETURN_IF_ERROR(streams_->BeginCapture());
    const absl::Status executed = ExecuteInstructions(stretch);
    // Also to end a capture that has failed.
    auto graph = streams_->EndCapture();
    RETURN_IF_ERROR(executed);
    RETURN_IF_ERROR(graph.status());
    graphs.push_back(*std::move(graph));
  }
  return graphs;
}

absl::Status DeviceExecutor::EnqueueStretch(size_t index, ParameterGate* gate) {
  const Stretch& stretch = stretches_[index];
  if (update_ == nullptr && !stretch.parameters.empty()) {
    RETURN_IF_ERROR(SendParameters(stretch.parameters, gate));
    RETURN_IF_ERROR(LetComputeWaitForParameters());
  }
  if (stretch.changes_loss) {
    RETURN_IF_ERROR(streams_->Wait(Stream::kCompute, *fetched_));
  }
  RETURN_IF_ERROR(ComputeStretch(index));
  if (arrived_[index] == nullptr) return absl::OkStatus();
  return EnqueueDelivery(index);
}

absl::Status DeviceExecutor::ComputeStretch(size_t index) {
  const Stretch& stretch = stretches_[index];
  // The loss is made by the last instruction of a stretch.
  const auto loss = static_cast<size_t>(model_.schedule->loss_instruction);
  const char* const name = stretch.begin <= loss ? "forward" : "backward";
  return timer_.Time({Stream::kCompute, name}, [&] {
    const Side& side = sides_[side_];
    return side.graphs.empty() ? ExecuteInstructions(stretch)
                               : streams_->Launch(*side.graphs[index]);
  });
}

absl::Status DeviceExecutor::ExecuteInstructions(const Stretch& stretch) {
  for (size_t i = stretch.begin; i < stretch.end; ++i) {
    RETURN_IF_ERROR(
        Execute(model_.plan->instructions[i], sides_[side_].operands[i]));
  }
  const bool is_last = stretch.end == model_.plan->instructions.size();
  if (update_ == nullptr || !is_last) return absl::OkStatus();
  return update_->EnqueueCheck();
}

absl::Status DeviceExecutor::EnqueueDelivery(size_t index) {
  const Stretch& stretch = stretches_[index];
  RETURN_IF_ERROR(streams_->Record(computed_.get(), Stream::kCompute));
  RETURN_IF_ERROR(streams_->Wait(Stream::kToHost, *computed_));
  if (stretch.makes_loss) {
    RETURN_IF_ERROR(
        timer_.Time({Stream::kToHost, "loss", /*tensor=*/-1, sizeof(double)},
                    [this] { return results_->FetchForwardLoss(); }));
    RETURN_IF_ERROR(streams_->Record(fetched_.get(), Stream::kToHost));
  }
  for (const int parameter : stretch.gradients) {
    RETURN_IF_ERROR(EnqueueGradient(parameter));
  }
  if (index + 1 == stretches_.size()) RETURN_IF_ERROR(EnqueueResults());
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
  for (size_t i = 0; i < stretches_.size(); ++i) {
    if (arrived_[i] == nullptr) continue;
    RETURN_IF_ERROR(streams_->Await(*arrived_[i]));
    RETURN_IF_ERROR(Tell(stretches_[i], listener));
  }
  return absl::OkStatus();
}

absl::Status DeviceExecutor::Tell(const Stretch& stretch,
                                  StepListener* listener) const {
  if (listener == nullptr) return absl::OkStatus();
  if (stretch.makes_loss) {
    RETURN_IF_ERROR(listener->OnForward(results_->forward_loss()));
  }
  for (const int parameter : stretch.gradients) {
    listener->OnGradient(parameter);
  }
  return absl::OkStatus();
}

}  // namespace muster
