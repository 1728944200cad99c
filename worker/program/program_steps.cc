#include "worker/program/program_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/stopped_error.h"
#include "common/optimizer/learning_rate_factor.h"
#include "common/tensor/shape.h"
#include "worker/step/acknowledged_step.h"

namespace muster {
namespace {

// Far more than a step has, and their sums no overflow.
constexpr int64_t kMaxStepExamples = int64_t{1} << 31;

absl::Status CheckFigures(const ProgramSteps::Figures& figures) {
  if (figures.examples < 0 || figures.examples > kMaxStepExamples) {
    return absl::InvalidArgumentError(absl::StrCat("push: ", figures.examples,
                                                   " examples; wanted 0 to ",
                                                   kMaxStepExamples));
  }
  if (figures.correct < -1 || figures.correct > figures.examples) {
    return absl::InvalidArgumentError(absl::StrCat(
        "push: ", figures.correct, " right answers of ", figures.examples,
        " examples; wanted at most as many, or -1 if it is not known"));
  }
  if (!(figures.learning_rate_factor > 0 &&
        figures.learning_rate_factor <= kMaxLearningRateFactor)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "push: the factor of the learning rate is ",
        figures.learning_rate_factor, "; wanted more than 0, and at most ",
        kMaxLearningRateFactor));
  }
  return absl::OkStatus();
}

}  // namespace

ProgramSteps::ProgramSteps(Options options) : options_(std::move(options)) {
  tower_.device = "program";
}

// ---- The session's thread -------------------------------------------------

absl::Status ProgramSteps::Enter(const EnterEpoch& epoch) {
  if (epoch.is_new) GiveUpUnfinished();
  options_.exchange->Enter(epoch.model_epoch, epoch.ps_incarnations);
  model_epoch_ = epoch.model_epoch;
  return absl::OkStatus();
}

absl::StatusOr<ProgramSteps::Given> ProgramSteps::AwaitGradients(
    int64_t step, const StepGrant& grant) {
  has_last_ = false;
  absl::MutexLock lock(&mu_);
  if (!stopped_) {
    offer_ = next_;
    has_values_ = true;
    offer_->step = step;
    offer_->model_epoch = model_epoch_;
    offer_->leases = grant.leases;
    options_.clock->Await(
        &mu_, absl::Condition(this, &ProgramSteps::IsGivenOrStopped),
        absl::InfiniteDuration());
  }
  offer_.reset();
  if (!given_.has_value()) {
    return StoppedError(
        absl::StrCat("step ", step, ": waiting for the program's gradients"));
  }
  // Until OnCounted says otherwise.
  next_.staleness = 0;
  next_.dropped = true;
  return *std::exchange(given_, std::nullopt);
}

void ProgramSteps::Use(const Given& given, const StepToken& token) {
  options_.exchange->PushFrom(given.gradients);
  tower_.gradients.assign(given.gradients.begin(), given.gradients.end());
  for (size_t i = 0; i < given.gradients.size(); ++i) {
    options_.tensors[i].gradient = given.gradients[i];
  }
  if (token.has_counts()) {
    StepCounts counts = token.counts();
    counts.set_steps(counts.steps() + 1);
    counts.set_examples(counts.examples() + given.figures.examples);
    options_.exchange->SetCounts(std::move(counts));
  }
  const double factor = given.figures.learning_rate_factor;
  if (factor == 1) return;
  const double of_job =
      token.learning_rate_factor() == 0 ? 1 : token.learning_rate_factor();
  // 0 would stand for 1.
  options_.client->SetLearningRateFactor(
      std::max(of_job * factor, std::numeric_limits<double>::min()));
}

ComputedStep ProgramSteps::Computed(const StepReport& report) const {
  ComputedStep computed;
  computed.loss = report.loss;
  computed.has_loss = report.has_loss;
  computed.correct = report.correct;
  computed.examples = report.examples;
  computed.tensors = options_.tensors;
  computed.towers = absl::MakeConstSpan(&tower_, 1);
  return computed;
}

absl::StatusOr<StepReport> ProgramSteps::Conclude(
    StepReport report, absl::StatusOr<StepResult> result) {
  if (result.ok()) {
    return Acknowledged(std::move(report), *std::move(result), Now());
  }
  if (options_.exchange->may_resume()) unfinished_ = std::move(report);
  return result.status();
}

absl::StatusOr<StepReport> ProgramSteps::Run(int64_t step,
                                             const StepGrant& grant,
                                             const BeforePush& before_push) {
  StepExchange& exchange = *options_.exchange;
  StepReport report;
  report.step = step;
  report.round = grant.token.round();
  report.rows = grant.leases.front();
  StepTimes& times = report.times;
  times.begun = times.rows_begun = times.rows_done = times.read_begun =
      times.read = Now();
  exchange.BeginStep(step, grant.token);
  const absl::Cleanup end = [this] {
    if (!may_resume()) options_.exchange->EndStep();
  };
  RETURN_IF_ERROR(exchange.Prepare({}, grant.token).status());
  RETURN_IF_ERROR(exchange.OnComputed(absl::OkStatus(), &times));
  times.compute_begun = Now();
  ASSIGN_OR_RETURN(const Given given, AwaitGradients(step, grant));
  times.computed = Now();
  Use(given, grant.token);
  report.examples = tower_.examples = given.figures.examples;
  report.correct = tower_.correct = given.figures.correct;
  report.loss = tower_.loss = given.figures.loss;
  report.has_loss = !std::isnan(given.figures.loss);
  ASSIGN_OR_RETURN(const PushDecision decision, before_push(Computed(report)));
  times.decided = times.ended = Now();
  report.abandoned = report.skipped = decision == PushDecision::kRefuse;
  if (report.abandoned) return report;
  RETURN_IF_ERROR(exchange.Send());
  return Conclude(std::move(report), exchange.Finish());
}

absl::StatusOr<StepReport> ProgramSteps::Resume() {
  StepReport step = *std::exchange(unfinished_, std::nullopt);
  options_.exchange->Resume();
  absl::StatusOr<StepReport> report =
      Conclude(std::move(step), options_.exchange->Finish());
  if (!may_resume()) options_.exchange->EndStep();
  return report;
}

void ProgramSteps::GiveUpUnfinished() {
  if (!unfinished_.has_value()) return;
  unfinished_.reset();
  options_.exchange->EndStep();
}

void ProgramSteps::BringLast() {
  // It came when nothing was left to do.
  if (model_epoch_ == 0 || bring_ == nullptr) return;
  has_last_ = bring_(model_epoch_).ok();
  if (has_last_) SetHasValues(true);
}

void ProgramSteps::SetHasValues(bool has_values) {
  absl::MutexLock lock(&mu_);
  has_values_ = has_values;
}

void ProgramSteps::OnCounted(double staleness, bool dropped,
                             int64_t global_step) {
  absl::MutexLock lock(&mu_);
  next_.staleness = staleness;
  next_.dropped = dropped;
  next_.global_step = global_step;
}

// ---- From any thread ------------------------------------------------------

void ProgramSteps::StopWaiting() {
  absl::MutexLock lock(&mu_);
  stopped_ = true;
}

void ProgramSteps::End() {
  absl::MutexLock lock(&mu_);
  stopped_ = over_ = true;
}

// ---- The program's thread -------------------------------------------------

ProgramSteps::State ProgramSteps::Await(absl::Duration timeout, Offer* offer) {
  absl::MutexLock lock(&mu_);
  options_.clock->Await(
      &mu_, absl::Condition(this, &ProgramSteps::IsOfferedOrOver), timeout);
  is_shown_ = offer_.has_value() && !over_;
  if (over_) return State::kOver;
  if (!is_shown_) return State::kWaiting;
  *offer = *offer_;
  return State::kStep;
}

bool ProgramSteps::has_values() const {
  absl::MutexLock lock(&mu_);
  return has_values_;
}

absl::Status ProgramSteps::CheckGradients(
    absl::Span<const absl::Span<float>> gradients) const {
  const std::vector<StepTensor>& tensors = options_.tensors;
  if (gradients.size() != tensors.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("push: ", gradients.size(), " gradients; wanted ",
                     tensors.size(), ", one a tensor"));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t wanted = NumElements(tensors[i].shape);
    if (static_cast<int64_t>(gradients[i].size()) == wanted) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("push: the gradient of '", tensors[i].name, "' has ",
                     gradients[i].size(), " values; wanted ", wanted,
                     ", shape [", absl::StrJoin(tensors[i].shape, ","), "]"));
  }
  return absl::OkStatus();
}

absl::Status ProgramSteps::Give(std::vector<absl::Span<float>> gradients,
                                const Figures& figures) {
  RETURN_IF_ERROR(CheckGradients(gradients));
  RETURN_IF_ERROR(CheckFigures(figures));
  absl::MutexLock lock(&mu_);
  if (!is_shown_) {
    return absl::FailedPreconditionError(
        "push: no step is wanted; wait for one first");
  }
  is_shown_ = false;
  // Withdrawn: the program is about to hear of the end.
  if (!offer_.has_value()) return absl::OkStatus();
  offer_.reset();
  given_ = Given{std::move(gradients), figures};
  return absl::OkStatus();
}

}  // namespace muster
