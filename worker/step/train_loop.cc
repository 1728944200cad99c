#include "worker/step/train_loop.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/memory/memory.h"
#include "common/base/split_mix64.h"
#include "common/base/status_macros.h"
#include "common/rows/row_ranges.h"
#include "worker/client/call_status.h"
#include "worker/executor/parameter_gate.h"
#include "worker/executor/step_listener.h"
#include "worker/step/acknowledged_step.h"

namespace muster {
namespace {

StepTensor DescribeTensor(TowerGroup& towers, int i) {
  CompiledModel& model = towers.model();
  const TensorDef& definition = model.parameters()[i];
  StepTensor tensor;
  tensor.name = definition.name();
  tensor.shape.assign(definition.shape().begin(), definition.shape().end());
  tensor.trainable = definition.kind() == TRAINABLE;
  tensor.gradient = towers.gradient(i);
  return tensor;
}

int64_t RowsOf(absl::Span<const SeededBatch> batches) {
  int64_t rows = 0;
  for (const SeededBatch& batch : batches) rows += batch.batch->rows;
  return rows;
}

// Notes when the passes of a step end, for its times, and tells another.
class PassTimes : public StepListener {
 public:
  PassTimes(const Clock* clock, StepTimes* times, StepListener* listener)
      : clock_(*clock), times_(*times), listener_(*listener) {}

  absl::Status OnForward(double loss) override {
    times_.forward_end = clock_.Now();
    return listener_.OnForward(loss);
  }
  void OnGradient(int parameter) override {
    times_.backward_end = clock_.Now();
    listener_.OnGradient(parameter);
  }

 private:
  const Clock& clock_;
  StepTimes& times_;
  StepListener& listener_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TrainLoop>> TrainLoop::Create(
    const Options& options) {
  auto loop = absl::WrapUnique(new TrainLoop(options));
  ASSIGN_OR_RETURN(loop->pipeline_,
                   InputPipeline::Create(loop->data(), loop->options_.input));
  return loop;
}

TrainLoop::TrainLoop(const Options& options)
    : options_(options),
      exchange_(*options.exchange),
      capabilities_(exchange_.capabilities()) {
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
}

InputData TrainLoop::data() const {
  if (options_.data_set != nullptr) return options_.data_set;
  return InputData(options_.open_stream);
}

absl::Status TrainLoop::Enter(const EnterEpoch& epoch) {
  computed_.reset();
  if (epoch.is_new) GiveUpUnfinished();
  exchange_.Enter(epoch.model_epoch, epoch.ps_incarnations);
  return absl::OkStatus();
}

void TrainLoop::UseLeases(const StepGrant& grant) {
  absl::Span<const RowLease> leases = grant.leases;
  if (!batches_.empty() && lease_ == leases.front()) {
    leases.remove_prefix(1);
  } else {
    computed_.reset();
    batches_.clear();
  }
  pipeline_->SetLeases(leases, grant.pass);
}

absl::Status TrainLoop::Read(const RowLease& lease, StepTimes* times) {
  times->read_begun = Now();
  if (batches_.empty()) {
    // Not a lost peer's: reconnecting would find it again, without end.
    ASSIGN_OR_RETURN(const absl::Span<const Batch> read,
                     OfFile(pipeline_->Next()));
    lease_ = lease;
    AddSeeds(read, lease_, &batches_);
  }
  times->read = Now();
  times->rows_begun = pipeline_->preparation().begun;
  times->rows_done = pipeline_->preparation().done;
  return absl::OkStatus();
}

void TrainLoop::AddSeeds(absl::Span<const Batch> batches, const RowLease& lease,
                         std::vector<SeededBatch>* seeded) const {
  seeded->clear();
  for (size_t i = 0; i < batches.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) * options_.input.batch_size;
    seeded->push_back({&batches[i], SeedOf(PlaceOf(lease, row))});
  }
}

// The seed of what dropout draws for the batch whose first row is there: the
// same whoever has the batch, and how often.
uint64_t TrainLoop::SeedOf(int64_t place) const {
  const InputPipeline::Options& input = options_.input;
  const uint64_t number = place / input.batch_size;
  // One worker alone had these numbers from its first version on.
  return SplitMix64(input.seed + kSplitMix64Step * (number + 2));
}

ComputedStep TrainLoop::Computed(const StepReport& report) const {
  ComputedStep computed;
  computed.loss = report.loss;
  computed.correct = report.correct;
  computed.examples = report.examples;
  computed.tensors = tensors_;
  computed.towers = options_.towers->steps();
  exchange_.Describe(&computed);
  return computed;
}

std::vector<DeviceTrace> TrainLoop::NewTraces(int64_t step) const {
  std::vector<DeviceTrace> traces;
  if (!options_.profiled.Has(step) && !traced_.Has(step)) return traces;
  for (const TowerStep& tower : options_.towers->steps()) {
    traces.push_back({tower.device, options_.clock});
  }
  return traces;
}

absl::StatusOr<ParameterGate*> TrainLoop::Prepare(const StepToken& token,
                                                  const RowLease& lease,
                                                  StepTimes* times) {
  if (capabilities_.wants_batches) {
    RETURN_IF_ERROR(Read(lease, times));
    return exchange_.Prepare(batches_, token);
  }
  ASSIGN_OR_RETURN(ParameterGate* const gate, exchange_.Prepare({}, token));
  RETURN_IF_ERROR(Read(lease, times));
  return gate;
}

absl::Status TrainLoop::RunTowers(ParameterGate* gate, StepTimes* times) {
  TowerGroup& towers = *options_.towers;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i].value = towers.model().read_parameter(static_cast<int>(i));
  }
  const InputPipeline::PreparedStep next = pipeline_->Peek();
  AddSeeds(next.batches, next.lease, &next_);
  PassTimes listener(options_.clock, times, &exchange_);
  times->compute_begun = Now();
  RETURN_IF_ERROR(
      exchange_.OnComputed(towers.Run(batches_, next_, &listener, gate,
                                      absl::MakeSpan(times->devices)),
                           times));
  times->computed = Now();
  return absl::OkStatus();
}

void TrainLoop::SetCounts(const StepToken& token, int64_t examples) {
  if (!token.has_counts()) return;
  StepCounts counts = token.counts();
  counts.set_steps(counts.steps() + 1);
  counts.set_examples(counts.examples() + examples);
  exchange_.SetCounts(std::move(counts));
}

absl::Status TrainLoop::Compute(int64_t step, const StepToken& token,
                                const RowLease& lease) {
  StepReport report;
  report.times.devices = NewTraces(step);
  ASSIGN_OR_RETURN(ParameterGate* const gate,
                   Prepare(token, lease, &report.times));
  SetCounts(token, RowsOf(batches_));
  RETURN_IF_ERROR(RunTowers(gate, &report.times));
  const TowerGroup& towers = *options_.towers;
  report.rows = lease_;
  report.pass = pipeline_->pass();
  report.examples = towers.examples();
  report.correct = towers.correct();
  report.loss = towers.loss();
  computed_ = std::move(report);
  return absl::OkStatus();
}

absl::StatusOr<StepResult> TrainLoop::Exchange(int64_t step,
                                               const StepGrant& grant) {
  if (options_.change_gradients != nullptr) {
    options_.change_gradients(trainable_);
  }
  RETURN_IF_ERROR(exchange_.Send());
  return capabilities_.computes_ahead && grant.leases.size() > 1
             ? ComputeAheadAndFinish(step + 1, grant.leases[1])
             : exchange_.Finish();
}

absl::StatusOr<StepResult> TrainLoop::ComputeAheadAndFinish(
    int64_t next, const RowLease& lease) {
  batches_.clear();
  // An error here is found, and told, by the next Run; the step whose push is
  // on its way may come through.
  Compute(next, StepToken(), lease).IgnoreError();
  return exchange_.Finish();
}

absl::StatusOr<StepReport> TrainLoop::Conclude(
    StepReport report, absl::StatusOr<StepResult> result) {
  if (result.ok()) {
    return Acknowledged(std::move(report), *std::move(result), Now());
  }
  computed_.reset();
  if (exchange_.may_resume()) unfinished_ = std::move(report);
  return result.status();
}

void TrainLoop::GiveUpUnfinished() {
  if (!unfinished_.has_value()) return;
  unfinished_.reset();
  exchange_.EndStep();
}

absl::StatusOr<StepReport> TrainLoop::Resume() {
  StepReport step = *std::exchange(unfinished_, std::nullopt);
  exchange_.Resume();
  absl::StatusOr<StepReport> report =
      Conclude(std::move(step), exchange_.Finish());
  if (!may_resume()) exchange_.EndStep();
  return report;
}

absl::StatusOr<StepReport> TrainLoop::Run(int64_t step, const StepGrant& grant,
                                          const BeforePush& before_push) {
  const absl::Time begun = Now();
  UseLeases(grant);
  exchange_.BeginStep(step, grant.token);
  const absl::Cleanup end = [this] {
    if (!may_resume()) exchange_.EndStep();
  };
  if (computed_.has_value()) {
    SetCounts(grant.token, computed_->examples);
  } else {
    RETURN_IF_ERROR(Compute(step, grant.token, grant.leases.front()));
  }
  StepReport report = *std::exchange(computed_, std::nullopt);
  report.step = step;
  report.round = grant.token.round();
  report.times.begun = begun;
  ASSIGN_OR_RETURN(const PushDecision decision, before_push(Computed(report)));
  report.times.decided = Now();
  report.abandoned = report.skipped = decision == PushDecision::kRefuse;
  if (!report.abandoned) {
    return Conclude(std::move(report), Exchange(step, grant));
  }
  report.times.ended = Now();
  return report;
}

}  // namespace muster
