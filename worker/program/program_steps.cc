#include "worker/program/program_steps.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/stopped_error.h"
#include "common/optimizer/learning_rate_factor.h"
#include "common/tensor/shape.h"
#include "worker/client/row_pull.h"
#include "worker/step/acknowledged_step.h"

namespace muster {
namespace {

// Far more than a step has, and their sums no overflow.
constexpr int64_t kMaxStepExamples = int64_t{1} << 31;

absl::Status CheckRanges(const ProgramSteps::Figures& figures) {
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

absl::Status NoStep() {
  return absl::FailedPreconditionError(
      "push: no step is wanted; wait for one first");
}

absl::Status CheckDistinct(absl::string_view table,
                           absl::Span<const int64_t> ids) {
  // Mostly they are in order.
  if (std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) ==
      ids.end()) {
    return absl::OkStatus();
  }
  absl::flat_hash_set<int64_t> seen;
  seen.reserve(ids.size());
  for (const int64_t id : ids) {
    if (seen.insert(id).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("push: id ", id, " of '", table,
                     "' is there twice; add its gradients up"));
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

void ProgramSteps::MakeOffer(int64_t step, const StepGrant& grant) {
  has_last_ = has_figures_ = false;
  absl::MutexLock lock(&mu_);
  early_ = {};
  early_.gradients.resize(options_.tensors.size());
  given_rows_.clear();
  row_versions_.clear();
  withdrawn_ = absl::OkStatus();
  if (stopped_) return;
  offer_ = next_;
  ++offers_;
  token_ = grant.token;
  has_values_ = true;
  offer_->step = step;
  offer_->model_epoch = model_epoch_;
  offer_->leases = grant.leases;
}

ProgramSteps::Early ProgramSteps::AwaitEarly() {
  absl::MutexLock lock(&mu_);
  options_.clock->Await(
      &mu_, absl::Condition(this, &ProgramSteps::IsAnyGivenOrStopped),
      absl::InfiniteDuration());
  if (given_.has_value() || stopped_ || !withdrawn_.ok()) return {};
  Early early = early_;
  early_.unseen.clear();
  return early;
}

absl::StatusOr<ProgramSteps::Given> ProgramSteps::AwaitGradients(
    int64_t step, const StepToken& token) {
  for (Early early = AwaitEarly(); !early.unseen.empty();
       early = AwaitEarly()) {
    PushEarly(early, token);
  }
  absl::MutexLock lock(&mu_);
  offer_.reset();
  if (!given_.has_value()) {
    RETURN_IF_ERROR(withdrawn_);
    return StoppedError(
        absl::StrCat("step ", step, ": waiting for the program's gradients"));
  }
  // Until OnCounted says otherwise.
  next_.staleness = 0;
  next_.dropped = true;
  return *std::exchange(given_, std::nullopt);
}

void ProgramSteps::PushEarly(const Early& early, const StepToken& token) {
  if (!has_figures_) {
    UseFigures(*early.figures, token);
    std::vector<absl::Span<float>> gradients;
    for (const StepTensor& tensor : options_.tensors) {
      // Where it will lie is not known yet.
      gradients.emplace_back(nullptr, NumElements(tensor.shape));
    }
    options_.exchange->PushFrom(std::move(gradients));
    // The program is to give the rest, whatever ails the push; Send finds it
    // again.
    options_.exchange->OnForward(/*loss=*/0).IgnoreError();
  }
  for (const int tensor : early.unseen) {
    options_.exchange->PushFrom(tensor, early.gradients[tensor]);
    options_.exchange->OnGradient(tensor);
  }
}

void ProgramSteps::UseGradients(
    const std::vector<absl::Span<float>>& gradients) {
  options_.exchange->PushFrom(gradients);
  tower_.gradients.assign(gradients.begin(), gradients.end());
  for (size_t i = 0; i < gradients.size(); ++i) {
    options_.tensors[i].gradient = gradients[i];
  }
}

void ProgramSteps::UseRows(const Given& given) {
  rows_.clear();
  for (const RowGradients& of : given.rows) {
    const ProgramTable& table = options_.tables[of.table];
    rows_.push_back({table.name(),
                     {static_cast<int64_t>(of.ids.size()), table.dim()},
                     /*trainable=*/true,
                     {},
                     of.gradients});
  }
  options_.exchange->PushRows(given.rows, given.row_versions);
}

void ProgramSteps::UseFigures(const Figures& figures, const StepToken& token) {
  if (std::exchange(has_figures_, true)) return;
  if (token.has_counts()) {
    StepCounts counts = token.counts();
    counts.set_steps(counts.steps() + 1);
    counts.set_examples(counts.examples() + figures.examples);
    options_.exchange->SetCounts(std::move(counts));
  }
  const double factor = figures.learning_rate_factor;
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
  computed.rows = rows_;
  computed.towers = absl::MakeConstSpan(&tower_, 1);
  options_.exchange->Describe(&computed);
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
  MakeOffer(step, grant);
  ASSIGN_OR_RETURN(const Given given, AwaitGradients(step, grant.token));
  times.computed = Now();
  UseFigures(given.figures, grant.token);
  UseGradients(given.gradients);
  UseRows(given);
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

void ProgramSteps::Disconnect() {
  absl::MutexLock lock(&mu_);
  disconnected_ = true;
  options_.clock->Await(&mu_,
                        absl::Condition(this, &ProgramSteps::IsNotPulling),
                        absl::InfiniteDuration());
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
  shown_offer_ = offers_;
  *offer = *offer_;
  return State::kStep;
}

bool ProgramSteps::has_values() const {
  absl::MutexLock lock(&mu_);
  return has_values_;
}

absl::Status ProgramSteps::CheckGradient(size_t tensor,
                                         absl::Span<float> gradient) const {
  const StepTensor& of = options_.tensors[tensor];
  const int64_t wanted = NumElements(of.shape);
  if (static_cast<int64_t>(gradient.size()) == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("push: the gradient of '", of.name, "' has ",
                   gradient.size(), " values; wanted ", wanted, ", shape [",
                   absl::StrJoin(of.shape, ","), "]"));
}

absl::Status ProgramSteps::CheckGradients(
    absl::Span<const absl::Span<float>> gradients) const {
  const size_t wanted = options_.tensors.size();
  if (gradients.size() != wanted) {
    return absl::InvalidArgumentError(absl::StrCat("push: ", gradients.size(),
                                                   " gradients; wanted ",
                                                   wanted, ", one a tensor"));
  }
  for (size_t i = 0; i < wanted; ++i) {
    RETURN_IF_ERROR(CheckGradient(i, gradients[i]));
  }
  return absl::OkStatus();
}

absl::Status ProgramSteps::CheckFigures(const Figures& figures) const {
  RETURN_IF_ERROR(CheckRanges(figures));
  if (!is_shown_) return NoStep();
  return CheckSame(figures);
}

absl::Status ProgramSteps::CheckSame(const Figures& figures) const {
  if (!early_.figures.has_value()) return absl::OkStatus();
  const Figures& first = *early_.figures;
  if (figures.examples == first.examples &&
      figures.learning_rate_factor == first.learning_rate_factor) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "push: ", figures.examples, " examples and learning_rate_factor ",
      figures.learning_rate_factor,
      "; the first gradient of the step has left "
      "with ",
      first.examples, " and ", first.learning_rate_factor,
      ": say the same of all, or push the gradients together"));
}

absl::Status ProgramSteps::Give(std::vector<absl::Span<float>> gradients,
                                const Figures& figures) {
  RETURN_IF_ERROR(CheckGradients(gradients));
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(CheckFigures(figures));
  is_shown_ = false;
  // Withdrawn: the program is about to hear of the end, or of another step.
  if (!IsShownStill()) return absl::OkStatus();
  offer_.reset();
  for (size_t i = 0; i < gradients.size(); ++i) {
    const absl::Span<float> early = early_.gradients[i];
    if (early.data() != nullptr) gradients[i] = early;
  }
  given_ = Given{std::move(gradients), figures, std::exchange(given_rows_, {}),
                 std::exchange(row_versions_, {})};
  return absl::OkStatus();
}

absl::Status ProgramSteps::GiveEarly(int tensor, absl::Span<float> gradient,
                                     const Figures& figures) {
  const int tensors = static_cast<int>(options_.tensors.size());
  if (tensor < 0 || tensor >= tensors) {
    return absl::InvalidArgumentError(absl::StrCat(
        "push: tensor ", tensor, "; wanted one from 0 to ", tensors - 1));
  }
  RETURN_IF_ERROR(CheckGradient(tensor, gradient));
  if (!options_.tables.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "push: the gradient of '", options_.tensors[tensor].name,
        "' alone, in a job with a table, '", options_.tables.front().name(),
        "'; push all gradients of a step together"));
  }
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(CheckFigures(figures));
  if (!offer_.has_value()) return absl::OkStatus();
  if (early_.gradients[tensor].data() != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("push: the gradient of '", options_.tensors[tensor].name,
                     "' was given before in this step; wanted it once"));
  }
  early_.gradients[tensor] = gradient;
  early_.unseen.push_back(tensor);
  if (!early_.figures.has_value()) early_.figures = figures;
  return absl::OkStatus();
}

absl::Status ProgramSteps::CheckRows(int table, absl::string_view what,
                                     size_t ids, size_t values) const {
  const auto tables = static_cast<int>(options_.tables.size());
  if (table < 0 || table >= tables) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": table ", table, "; the program has ", tables, " tables"));
  }
  const ProgramTable& of = options_.tables[table];
  if (values == ids * static_cast<size_t>(of.dim())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": ", ids, " ids and ", values, " values of '",
                   of.name(), "'; wanted ", of.dim(), " values a row"));
}

std::optional<ProgramSteps::RowPull> ProgramSteps::BeginRowPull(
    absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  options_.clock->Await(&mu_,
                        absl::Condition(this, &ProgramSteps::MayPullRowsOrOver),
                        std::max(deadline - Now(), absl::ZeroDuration()));
  if (over_ || !MayPullRowsOrOver()) return std::nullopt;
  ++row_pulls_;
  return RowPull{offers_, token_};
}

void ProgramSteps::EndRowPull(
    const RowPull& pull, const absl::StatusOr<std::vector<int64_t>>& versions) {
  absl::MutexLock lock(&mu_);
  --row_pulls_;
  if (!offer_.has_value() || pull.offer != offers_) return;
  if (versions.ok()) return AddRowVersions(*versions, &row_versions_);
  // As if the step's parameters had not come: the session finds out what ails
  // the ps tasks, and begins the step anew.
  withdrawn_ = versions.status();
  offer_.reset();
  next_.staleness = 0;
  next_.dropped = true;
}

absl::StatusOr<ProgramSteps::State> ProgramSteps::PullRows(
    int table, absl::Span<const int64_t> ids, absl::Span<float> into,
    absl::Duration timeout) {
  RETURN_IF_ERROR(CheckRows(table, "pull", ids.size(), into.size()));
  const absl::Time deadline = Now() + timeout;
  while (const std::optional<RowPull> pull = BeginRowPull(deadline)) {
    const absl::StatusOr<std::vector<int64_t>> versions =
        options_.client->PullRows({{table, ids, into}}, pull->token);
    EndRowPull(*pull, versions);
    if (versions.ok()) return State::kStep;
  }
  absl::MutexLock lock(&mu_);
  return over_ ? State::kOver : State::kWaiting;
}

absl::Status ProgramSteps::GiveRows(int table, absl::Span<const int64_t> ids,
                                    absl::Span<const float> gradients) {
  RETURN_IF_ERROR(CheckRows(table, "push", ids.size(), gradients.size()));
  const std::string& name = options_.tables[table].name();
  RETURN_IF_ERROR(CheckDistinct(name, ids));
  absl::MutexLock lock(&mu_);
  if (!is_shown_) return NoStep();
  if (!IsShownStill()) return absl::OkStatus();
  for (const RowGradients& rows : given_rows_) {
    if (rows.table != table) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("push: rows of '", name,
                     "' were given before in this step; wanted them once"));
  }
  given_rows_.push_back({table, ids, gradients});
  return absl::OkStatus();
}

}  // namespace muster
