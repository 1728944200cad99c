#include "worker/train_loop.h"

#include <cmath>
#include <utility>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// What dropout draws from in one step: other for each worker and each batch,
// and the same again when the step is run again.
uint64_t StepSeed(const InputPipeline::Options& input, int64_t position) {
  // SplitMix64's finalizer (Steele, Lea, Flood, 2014).
  uint64_t x = input.seed + 0x9e3779b97f4a7c15u *
                                (static_cast<uint64_t>(position) *
                                     static_cast<uint64_t>(input.num_workers) +
                                 static_cast<uint64_t>(input.worker_index) + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

StepTensor DescribeTensor(CompiledModel& model, int i) {
  const TensorDef& definition = model.parameters()[i];
  StepTensor tensor;
  tensor.name = definition.name();
  tensor.shape.assign(definition.shape().begin(), definition.shape().end());
  tensor.trainable = definition.kind() == TRAINABLE;
  tensor.value = model.parameter(i);
  tensor.gradient = model.gradient(i);
  return tensor;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainLoop>> TrainLoop::Create(
    const Options& options) {
  auto loop = absl::WrapUnique(new TrainLoop(options));
  ASSIGN_OR_RETURN(loop->pipeline_,
                   InputPipeline::Create(options.data_set, options.input));
  return loop;
}

TrainLoop::TrainLoop(const Options& options) : options_(options) {
  for (size_t i = 0; i < options.model->parameters().size(); ++i) {
    const int tensor = static_cast<int>(i);
    parameters_.push_back(MutableViewOf(options.model->parameter(tensor)));
    gradients_.push_back(ViewOf(options.model->gradient(tensor)));
    tensors_.push_back(DescribeTensor(*options.model, tensor));
  }
}

absl::Status TrainLoop::Enter(const EnterEpoch& epoch) {
  options_.client->SetEpoch(epoch.model_epoch, epoch.ps_incarnations);
  if (epoch.data_position == EnterEpoch::kKeepPosition) return absl::OkStatus();
  if (batch_ == nullptr && pipeline_->position() == epoch.data_position) {
    return absl::OkStatus();
  }
  batch_ = nullptr;
  options_.input.start_step = epoch.data_position;
  ASSIGN_OR_RETURN(pipeline_,
                   InputPipeline::Create(options_.data_set, options_.input));
  return absl::OkStatus();
}

absl::StatusOr<StepReport> TrainLoop::Run(int64_t step, const StepToken& token,
                                          const BeforePush& before_push) {
  StepReport report;
  report.step = step;
  report.round = token.round();
  report.times.begun = Now();
  if (batch_ == nullptr) {
    ASSIGN_OR_RETURN(batch_, pipeline_->Next());
  }
  report.examples = batch_->rows;
  report.data_position = pipeline_->position();
  report.times.read = Now();
  RETURN_IF_ERROR(options_.client->PullAndWait(parameters_, token));
  report.times.pulled = Now();
  ASSIGN_OR_RETURN(
      const CompiledModel::StepResult result,
      options_.model->Step(*batch_,
                           StepSeed(options_.input, pipeline_->position())));
  report.correct = result.correct;
  report.loss = result.loss;
  report.times.computed = Now();
  ASSIGN_OR_RETURN(
      const PushDecision decision,
      before_push({result.loss, result.correct, batch_->rows, tensors_}));
  report.times.decided = Now();
  if (decision == PushDecision::kPush) {
    ASSIGN_OR_RETURN(
        const PushOutcome outcome,
        options_.client->PushAndWait(step, gradients_, token.round()));
    report.staleness = std::llround(outcome.mean_staleness);
    report.late = outcome.late;
  }
  report.times.pushed = Now();
  report.abandoned = decision == PushDecision::kRefuse;
  batch_ = nullptr;
  return report;
}

}  // namespace muster
