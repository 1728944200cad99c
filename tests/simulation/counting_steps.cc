#include "tests/simulation/counting_steps.h"

#include <cmath>
#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "common/rows/row_ranges.h"

namespace muster {
namespace {

std::vector<MutableTensorView> Into(TensorValues* values) {
  std::vector<MutableTensorView> views;
  for (std::vector<float>& value : *values) {
    views.push_back(MutableViewOf(absl::MakeSpan(value)));
  }
  return views;
}

ComputedStep Computed(const RowLease& rows) {
  ComputedStep computed;
  computed.examples = NumRows(rows);
  return computed;
}

}  // namespace

CountingSteps::CountingSteps(const SimProcess* process, Oracle* oracle,
                             const SimModel* model, ParameterClient* client,
                             const Sender& sender, Bug bug)
    : process_(process),
      oracle_(oracle),
      model_(model),
      client_(client),
      sender_(sender),
      bug_(bug),
      random_(sender.incarnation()) {
  for (const TensorDef& tensor : model->placed.tensors) {
    values_.emplace_back(tensor.shape(0));
    arrivals_.emplace_back(tensor.shape(0));
    gradients_.emplace_back(tensor.shape(0), 0.0f);
  }
}

void CountingSteps::SetGradients(int64_t step) {
  const auto value = static_cast<float>(
      SimModel::kUnit * SimModel::PushValue(sender_.incarnation(), step));
  for (const std::vector<CounterBlock>& blocks : model_->blocks_of) {
    for (const CounterBlock& block : blocks) {
      const bool is_state =
          model_->placed.tensors[block.tensor].kind() == STATE;
      gradients_[block.tensor]
                [block.begin + block.first + sender_.task().index()] =
                    is_state ? value : -value;
    }
  }
}

void CountingSteps::SetCounts(const StepToken& token) {
  if (!token.has_counts()) return;
  StepCounts counts = token.counts();
  counts.set_steps(counts.steps() + 1);
  counts.set_examples(counts.examples() + NumRows(rows_));
  client_->SetCounts(std::move(counts));
}

// As TrainLoop: a lease ahead is prepared while the step before it is taken.
void CountingSteps::SetRows(int64_t step, const StepGrant& grant) {
  rows_ = grant.leases.front();
  const bool is_prepared =
      prepared_.has_value() &&
      (*prepared_ == rows_ || bug_ == Bug::kPrefetchOutlivesWorker);
  if (!is_prepared) is_computed_ = false;
  oracle_->StepTrains(sender_.incarnation(), epoch_.model_epoch, step,
                      is_prepared ? *prepared_ : rows_);
  prepared_.reset();
  if (grant.leases.size() > 1) prepared_ = grant.leases[1];
}

absl::Status CountingSteps::Enter(const EnterEpoch& epoch) {
  client_->SetEpoch(epoch.model_epoch, epoch.ps_incarnations);
  epoch_ = epoch;
  brought_ = nullptr;
  is_computed_ = false;
  if (epoch.is_new) push_ = nullptr;
  return absl::OkStatus();
}

std::vector<TensorView> CountingSteps::Views() const {
  std::vector<TensorView> views;
  for (const std::vector<float>& gradient : gradients_) {
    views.push_back(ViewOf(absl::MakeConstSpan(gradient)));
  }
  return views;
}

// As the forward pass: half of the time, and each tensor when it is needed.
absl::Status CountingSteps::PullAndCompute(const StepToken& token,
                                           absl::Duration compute) {
  if (brought_ != nullptr) {
    versions_ = std::exchange(brought_, nullptr);
    process_->Sleep(compute);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Pull> pull,
                   client_->BeginPull(Into(&values_), token));
  for (size_t i = 0; i < values_.size(); ++i) {
    RETURN_IF_ERROR(pull->Await(static_cast<int>(i)));
    process_->Sleep(compute / values_.size());
  }
  RETURN_IF_ERROR(pull->Finish());
  versions_ = pull->versions();
  return absl::OkStatus();
}

absl::StatusOr<PushResult> CountingSteps::ComputeAndPush(
    int64_t step, const StepToken& token, const BeforePush& before_push) {
  const absl::Duration compute = random_.About(model_->scenario.compute);
  RETURN_IF_ERROR(PullAndCompute(token, compute / 2));
  std::vector<MutableTensorView> into;
  if (model_->scenario.mode == Mode::kAsync ||
      token.clock() < token.values_until_clock()) {
    into = Into(&values_);
  }
  changes_at_push_ = oracle_->changes();
  values_until_clock_ = token.values_until_clock();
  ASSIGN_OR_RETURN(
      push_, client_->BeginPush(step, token.round(), Views(), into, versions_));
  // The last layers' gradients leave in mid-backward.
  for (size_t i = gradients_.size(); i-- > gradients_.size() / 2;) {
    push_->Release(static_cast<int>(i));
  }
  process_->Sleep(compute / 2);
  RETURN_IF_ERROR(before_push(Computed(rows_)).status());
  return push_->Finish();
}

// With a pipeline_depth of 2.
absl::StatusOr<PushResult> CountingSteps::PushAndComputeNext(
    int64_t step, const BeforePush& before_push) {
  const absl::Duration compute = random_.About(model_->scenario.compute);
  if (!std::exchange(is_computed_, false)) {
    RETURN_IF_ERROR(PullAndCompute(StepToken(), compute));
  }
  RETURN_IF_ERROR(before_push(Computed(rows_)).status());
  ASSIGN_OR_RETURN(push_, client_->BeginPush(step, /*round=*/0, Views(),
                                             Into(&arrivals_), versions_));
  if (brought_ != nullptr) versions_ = std::exchange(brought_, nullptr);
  push_->ReleaseOthers();
  // There may be no rows to compute ahead of.
  if (prepared_.has_value()) process_->Sleep(compute);
  absl::StatusOr<PushResult> outcome = push_->Finish();
  is_computed_ = outcome.ok() && prepared_.has_value();
  return outcome;
}

absl::StatusOr<StepReport> CountingSteps::Run(int64_t step,
                                              const StepGrant& grant,
                                              const BeforePush& before_push) {
  const StepToken& token = grant.token;
  // The worker was away: its clock has gone on without it.
  if (model_->scenario.mode == Mode::kBoundedStaleness &&
      token.clock() > values_until_clock_) {
    brought_ = nullptr;
  }
  oracle_->StepBegun(sender_.incarnation(), brought_ != nullptr
                                                ? changes_at_push_
                                                : oracle_->changes());
  // The step before is over, and nothing reads its gradients any more.
  SetGradients(step);
  SetRows(step, grant);
  SetCounts(token);
  step_ = step;
  round_ = token.round();
  return Conclude(model_->scenario.pipeline_depth > 1
                      ? PushAndComputeNext(step, before_push)
                      : ComputeAndPush(step, token, before_push));
}

bool CountingSteps::may_resume() const {
  return push_ != nullptr && push_->may_resume() &&
         bug_ != Bug::kUnansweredPushGivenUp;
}

absl::StatusOr<StepReport> CountingSteps::Resume() {
  client_->Resume(push_.get());
  absl::StatusOr<PushResult> outcome = push_->Finish();
  // The values are those of before.
  if (outcome.ok()) outcome->new_versions = nullptr;
  return Conclude(std::move(outcome));
}

absl::StatusOr<StepReport> CountingSteps::Conclude(
    absl::StatusOr<PushResult> outcome) {
  if (!may_resume()) push_ = nullptr;
  RETURN_IF_ERROR(outcome.status());
  brought_ = std::move(outcome->new_versions);
  if (!outcome->late) {
    oracle_->StepCompleted(sender_, epoch_.model_epoch,
                           epoch_.ps_incarnations[0], step_);
  }
  StepReport report;
  report.step = step_;
  report.examples = NumRows(rows_);
  report.rows = rows_;
  report.round = round_;
  report.late = outcome->late;
  report.staleness = std::llround(outcome->mean_staleness);
  return report;
}

}  // namespace muster
