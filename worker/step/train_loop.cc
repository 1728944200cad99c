#include "worker/step/train_loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/memory/memory.h"
#include "common/base/split_mix64.h"
#include "common/base/status_macros.h"
#include "worker/client/client_model.h"
#include "worker/tower/gradient_memory.h"

namespace muster {
namespace {

StepTensor DescribeTensor(TowerGroup& towers, int i) {
  CompiledModel& model = towers.model();
  const TensorDef& definition = model.parameters()[i];
  StepTensor tensor;
  tensor.name = definition.name();
  tensor.shape.assign(definition.shape().begin(), definition.shape().end());
  tensor.trainable = definition.kind() == TRAINABLE;
  tensor.value = model.parameter(i);
  tensor.gradient = towers.gradient(i);
  return tensor;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainLoop>> TrainLoop::Create(
    const Options& options) {
  auto loop = absl::WrapUnique(new TrainLoop(options));
  ASSIGN_OR_RETURN(
      loop->pipeline_,
      InputPipeline::Create(loop->options_.data_set, loop->options_.input));
  return loop;
}

TrainLoop::TrainLoop(const Options& options) : options_(options) {
  TowerGroup& towers = *options.towers;
  options_.input.batches_per_step = towers.batches_per_step();
  options_.input.batches_per_tower = towers.accumulate_batches();
  for (size_t i = 0; i < towers.model().parameters().size(); ++i) {
    const int tensor = static_cast<int>(i);
    tensors_.push_back(DescribeTensor(towers, tensor));
    if (tensors_.back().trainable) {
      trainable_.push_back(towers.gradient(tensor));
    }
  }
  parameters_ = std::make_unique<StepParameters>(ParameterOptions());
  push_.client = options.client;
  push_.clock = options.clock;
  push_.parameters = parameters_.get();
  push_.early = CanPushEarly();
  push_.allow_non_finite = options.allow_non_finite;
  push_.brings_values = BringsValues();
  PlacePushed();
}

StepParameters::Options TrainLoop::ParameterOptions() {
  StepParameters::Options parameters;
  parameters.client = options_.client;
  parameters.clock = options_.clock;
  parameters.ahead = is_pipelined();
  parameters.in_place = options_.pull_in_place;
  parameters.holder = options_.update;
  parameters.say = options_.say;
  parameters.read_from = [this](absl::Span<const float* const> values) {
    ReadParametersFrom(values);
  };
  CompiledModel& model = options_.towers->model();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    parameters.values.push_back(model.parameter(static_cast<int>(i)));
  }
  return parameters;
}

void TrainLoop::ReadParametersFrom(absl::Span<const float* const> values) {
  options_.towers->ReadParametersFrom(values);
  CompiledModel& model = options_.towers->model();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    absl::Span<const float>& value = tensors_[i].value;
    value = model.parameter(static_cast<int>(i));
    if (!values.empty()) value = {values[i], value.size()};
  }
}

// Where they would overwrite what hooks want to see, they are pulled.
bool TrainLoop::BringsValues() const {
  return options_.pull_with_push &&
         !(push_.early && options_.hooks_read_parameters);
}

void TrainLoop::PlacePushed() {
  if (is_pipelined()) {
    copies_ = PlaceGradients(options_.towers->model(), &copy_);
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const absl::Span<const float> pushed =
        copies_.empty() ? options_.towers->gradient(static_cast<int>(i))
                        : copies_[i];
    push_.gradients.push_back(ViewOf(pushed));
  }
}

// Clipping and a mean over towers or batches come after the backward pass. A
// pipelined step hides its push behind the next one's passes.
bool TrainLoop::CanPushEarly() const {
  return options_.push_early && options_.change_gradients == nullptr &&
         options_.towers->can_tell() && !is_pipelined();
}

absl::Status TrainLoop::Enter(const EnterEpoch& epoch) {
  computed_.reset();
  parameters_->Drop();
  options_.client->SetEpoch(epoch.model_epoch, epoch.ps_incarnations);
  if (!epoch.position.has_value()) return absl::OkStatus();
  if (batches_.empty() && pipeline_->IsAt(*epoch.position)) {
    return absl::OkStatus();
  }
  return GoTo(*epoch.position);
}

absl::Status TrainLoop::GoTo(const DataPosition& position) {
  batches_.clear();
  options_.input.start = position;
  ASSIGN_OR_RETURN(pipeline_,
                   InputPipeline::Create(options_.data_set, options_.input));
  return absl::OkStatus();
}

absl::Status TrainLoop::Read() {
  if (!batches_.empty()) return absl::OkStatus();
  read_at_ = pipeline_->position();
  ASSIGN_OR_RETURN(const absl::Span<const Batch> read, pipeline_->Next());
  AddSeeds(read, pipeline_->step_number(), &batches_);
  return absl::OkStatus();
}

void TrainLoop::AddSeeds(absl::Span<const Batch> batches, uint64_t number,
                         std::vector<SeededBatch>* seeded) const {
  seeded->clear();
  for (size_t i = 0; i < batches.size(); ++i) {
    seeded->push_back({&batches[i], SeedOf(number, static_cast<int64_t>(i))});
  }
}

// What dropout draws from: other for each worker, step and batch, and the same
// again when the step is run again.
uint64_t TrainLoop::SeedOf(uint64_t step_number, int64_t batch) const {
  const InputPipeline::Options& input = options_.input;
  // The number of the batch among those of all workers.
  const uint64_t number =
      (step_number * input.num_workers + input.worker_index) *
          input.batches_per_step +
      batch;
  return SplitMix64(input.seed + kSplitMix64Step * (number + 1));
}

ComputedStep TrainLoop::Computed(const StepReport& report,
                                 const StepPush& push) const {
  ComputedStep computed;
  computed.loss = report.loss;
  computed.correct = report.correct;
  computed.examples = report.examples;
  computed.tensors = tensors_;
  computed.towers = options_.towers->steps();
  computed.push_begun = push.has_left();
  if (DeviceUpdate* const update = options_.update; update != nullptr) {
    computed.gradients_are_finite = update->gradients_are_finite();
    computed.fetch_tensors = [update] { return update->FetchTensors(); };
  }
  return computed;
}

std::vector<DeviceTrace> TrainLoop::NewTraces(int64_t step) const {
  std::vector<DeviceTrace> traces;
  if (!options_.profiled.Has(step)) return traces;
  for (const TowerStep& tower : options_.towers->steps()) {
    traces.push_back({tower.device, options_.clock});
  }
  return traces;
}

absl::Status TrainLoop::RunTowers(StepPush* listener,
                                  absl::Span<DeviceTrace> traces) {
  AddSeeds(pipeline_->Peek(), pipeline_->next_step_number(), &next_);
  const absl::Status status = options_.towers->Run(batches_, next_, listener,
                                                   parameters_.get(), traces);
  // As the pull says it, without the tower that has found it out.
  RETURN_IF_ERROR(parameters_->failure());
  RETURN_IF_ERROR(status);
  return parameters_->Finish();
}

absl::Status TrainLoop::BeginAndCompute(const StepToken& token,
                                        StepPush* listener) {
  RETURN_IF_ERROR(parameters_->Begin(token));
  return Compute(listener);
}

absl::Status TrainLoop::Compute(StepPush* listener) {
  const TowerGroup& towers = *options_.towers;
  StepReport report;
  StepTimes& times = report.times;
  times.devices = NewTraces(listener->step());
  times.read_begun = Now();
  RETURN_IF_ERROR(Read());
  times.read = times.compute_begun = Now();
  RETURN_IF_ERROR(RunTowers(listener, absl::MakeSpan(times.devices)));
  times.computed = Now();
  times.forward_end = listener->forward_end();
  times.backward_end = listener->backward_end();
  times.pull_begun = parameters_->pull_begun();
  times.pulled = parameters_->pulled();
  times.waits = parameters_->waits();
  report.position = pipeline_->position();
  report.examples = towers.examples();
  report.correct = towers.correct();
  report.loss = towers.loss();
  computed_ = std::move(report);
  return absl::OkStatus();
}

// What fails here is found, and told, by the next Run; the step whose push is
// on its way may come through.
void TrainLoop::ComputeAhead(int64_t step) {
  StepPush listener(&push_, step, /*round=*/0);
  Compute(&listener).IgnoreError();
}

absl::StatusOr<PushResult> TrainLoop::Push(StepPush* push) {
  if (options_.change_gradients != nullptr) {
    options_.change_gradients(trainable_);
  }
  if (options_.update != nullptr) {
    return options_.client->UpdateOnDevice(push->step(),
                                           *parameters_->versions());
  }
  return is_pipelined() ? PushAndComputeAhead(push) : push->Finish();
}

absl::StatusOr<PushResult> TrainLoop::PushAndComputeAhead(StepPush* push) {
  for (size_t i = 0; i < copies_.size(); ++i) {
    const absl::Span<float> gradient =
        options_.towers->gradient(static_cast<int>(i));
    std::copy(gradient.begin(), gradient.end(), copies_[i].begin());
  }
  RETURN_IF_ERROR(push->Begin());
  // What the push before has brought is to be out of the way of what this one
  // brings.
  parameters_->BeginWithThoseAtHand();
  RETURN_IF_ERROR(push->Leave());
  const DataPosition begun_at = read_at_;
  batches_.clear();
  ComputeAhead(push->step() + 1);
  absl::StatusOr<PushResult> outcome = push->Finish();
  if (!outcome.ok()) {
    computed_.reset();
    RETURN_IF_ERROR(GoTo(begun_at));
  }
  return outcome;
}

absl::Status TrainLoop::Finish(StepPush* push, StepReport* report) {
  ASSIGN_OR_RETURN(PushResult outcome, Push(push));
  if (options_.update != nullptr) options_.update->Start();
  parameters_->Bring(std::move(outcome.new_versions));
  // With an update on the device nothing is sent.
  report->times.pushed =
      options_.update != nullptr ? Now() : report->times.decided;
  for (const SliceSend& send : outcome.sends) {
    report->times.pushed = std::max(report->times.pushed, send.acknowledged);
  }
  report->times.sends = std::move(outcome.sends);
  report->staleness = std::llround(outcome.mean_staleness);
  report->late = outcome.late;
  sent_bytes_ += outcome.sent_bytes;
  float32_bytes_ += outcome.float32_bytes;
  return absl::OkStatus();
}

absl::StatusOr<StepReport> TrainLoop::Run(int64_t step, const StepToken& token,
                                          const BeforePush& before_push) {
  const absl::Time begun = Now();
  options_.client->SettlePush(token);
  StepPush push(&push_, step, token.round());
  if (!computed_.has_value()) {
    RETURN_IF_ERROR(BeginAndCompute(token, &push));
  }
  StepReport report = *std::exchange(computed_, std::nullopt);
  report.step = step;
  report.round = token.round();
  report.times.begun = begun;
  ASSIGN_OR_RETURN(const PushDecision decision,
                   before_push(Computed(report, push)));
  report.times.decided = Now();
  report.abandoned = decision == PushDecision::kRefuse;
  if (!report.abandoned) RETURN_IF_ERROR(Finish(&push, &report));
  if (report.abandoned || !is_pipelined()) batches_.clear();
  report.times.ended = Now();
  return report;
}

}  // namespace muster
