#include "worker/train_loop.h"

#include <cmath>
#include <utility>

#include "absl/memory/memory.h"
#include "common/base/split_mix64.h"
#include "common/base/status_macros.h"

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
    const absl::Span<float> gradient = towers.gradient(tensor);
    parameters_.push_back(MutableViewOf(towers.model().parameter(tensor)));
    push_.gradients.push_back(ViewOf(absl::Span<const float>(gradient)));
    tensors_.push_back(DescribeTensor(towers, tensor));
    if (tensors_.back().trainable) trainable_.push_back(gradient);
  }
  push_.client = options.client;
  push_.clock = options.clock;
  push_.early = CanPushEarly();
  push_.allow_non_finite = options.allow_non_finite;
  if (options.pull_with_push &&
      !(push_.early && options.hooks_read_parameters)) {
    push_.into = parameters_;
  }
}

// Clipping, a codec and a mean over towers or batches come after the backward
// pass.
bool TrainLoop::CanPushEarly() const {
  return options_.push_early && options_.change_gradients == nullptr &&
         options_.client->can_push_gradually() && options_.towers->can_tell();
}

absl::Status TrainLoop::Enter(const EnterEpoch& epoch) {
  options_.client->SetEpoch(epoch.model_epoch, epoch.ps_incarnations);
  if (epoch.data_position == EnterEpoch::kKeepPosition) return absl::OkStatus();
  if (batches_.empty() && pipeline_->position() == epoch.data_position) {
    return absl::OkStatus();
  }
  batches_ = {};
  options_.input.start_step = epoch.data_position;
  ASSIGN_OR_RETURN(pipeline_,
                   InputPipeline::Create(options_.data_set, options_.input));
  return absl::OkStatus();
}

absl::Status TrainLoop::Read() {
  if (!batches_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(batches_, pipeline_->Next());
  return absl::OkStatus();
}

absl::Status TrainLoop::Pull(const StepToken& token) {
  const bool pushed = std::exchange(pushed_, false);
  // Another pull of the client's, such as an evaluation's, is a newer one.
  if (pushed && !push_.into.empty() &&
      options_.client->HoldsValues(parameters_)) {
    return absl::OkStatus();
  }
  return options_.client->PullAndWait(parameters_, token);
}

// What dropout draws from: other for each worker, step and batch, and the same
// again when the step is run again.
uint64_t TrainLoop::SeedOf(int64_t batch) const {
  const InputPipeline::Options& input = options_.input;
  const int64_t step = pipeline_->position();
  // The number of the batch among those of all workers.
  const auto number = static_cast<uint64_t>(
      (step * input.num_workers + input.worker_index) * input.batches_per_step +
      batch);
  return SplitMix64(input.seed + kSplitMix64Step * (number + 1));
}

ComputedStep TrainLoop::Computed(const StepPush& push) const {
  const TowerGroup& towers = *options_.towers;
  ComputedStep computed;
  computed.loss = towers.loss();
  computed.correct = towers.correct();
  computed.examples = towers.examples();
  computed.tensors = tensors_;
  computed.towers = towers.steps();
  computed.push_begun = push.has_left();
  return computed;
}

absl::Status TrainLoop::Finish(StepPush* push, StepReport* report) {
  if (options_.change_gradients != nullptr) {
    options_.change_gradients(trainable_);
  }
  ASSIGN_OR_RETURN(PushOutcome outcome, push->Finish());
  pushed_ = true;
  report->times.sends = std::move(outcome.sends);
  report->staleness = std::llround(outcome.mean_staleness);
  report->late = outcome.late;
  sent_bytes_ += outcome.sent_bytes;
  float32_bytes_ += outcome.float32_bytes;
  return absl::OkStatus();
}

absl::StatusOr<StepReport> TrainLoop::Run(int64_t step, const StepToken& token,
                                          const BeforePush& before_push) {
  StepReport report;
  report.step = step;
  report.round = token.round();
  report.times.begun = Now();
  options_.client->SettlePush(token);
  RETURN_IF_ERROR(Read());
  report.data_position = pipeline_->position();
  report.times.read = Now();
  RETURN_IF_ERROR(Pull(token));
  report.times.pulled = Now();
  StepPush push(&push_);
  RETURN_IF_ERROR(push.Begin(step, report.round));
  RETURN_IF_ERROR(options_.towers->Run(
      batches_, [this](int64_t batch) { return SeedOf(batch); }, &push));
  report.times.forward_end = push.forward_end();
  report.times.backward_end = push.backward_end();
  const ComputedStep computed = Computed(push);
  report.examples = computed.examples;
  report.correct = computed.correct;
  report.loss = computed.loss;
  report.times.computed = Now();
  ASSIGN_OR_RETURN(const PushDecision decision, before_push(computed));
  report.times.decided = Now();
  if (decision == PushDecision::kPush) RETURN_IF_ERROR(Finish(&push, &report));
  report.times.pushed = Now();
  report.abandoned = decision == PushDecision::kRefuse;
  batches_ = {};
  return report;
}

}  // namespace muster
