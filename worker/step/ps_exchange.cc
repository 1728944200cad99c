#include "worker/step/ps_exchange.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/finite.h"
#include "common/base/status_macros.h"
#include "worker/client/push.h"

namespace muster {

PsExchange::PsExchange(Options options,
                       std::unique_ptr<StepParameters> parameters)
    : options_(std::move(options)), parameters_(std::move(parameters)) {
  PushFrom(std::move(options_.gradients));
}

void PsExchange::PushFrom(std::vector<absl::Span<float>> gradients) {
  options_.gradients = std::move(gradients);
  views_.clear();
  for (const absl::Span<const float> gradient : options_.gradients) {
    views_.push_back(ViewOf(gradient));
  }
  for (size_t i = 0; push_ != nullptr && i < views_.size(); ++i) {
    Place(static_cast<int>(i));
  }
}

void PsExchange::PushFrom(int parameter, absl::Span<float> gradient) {
  options_.gradients[parameter] = gradient;
  views_[parameter] = ViewOf(absl::Span<const float>(gradient));
  if (push_ != nullptr) Place(parameter);
}

void PsExchange::Place(int parameter) {
  if (push_->is_released(parameter)) return;
  push_->Place(parameter, views_[parameter]);
}

void PsExchange::Enter(int64_t model_epoch,
                       absl::Span<const uint64_t> ps_incarnations) {
  parameters_->Drop();
  options_.client->SetEpoch(model_epoch, ps_incarnations);
}

void PsExchange::BeginStep(int64_t step, const StepToken& token) {
  options_.client->SettlePush(token);
  options_.client->SetLearningRateFactor(token.learning_rate_factor());
  step_ = step;
  round_ = token.round();
  is_resumed_ = false;
  // The worker was away: its clock has gone on without it.
  const bool too_old = token.clock() > values_until_clock_;
  if (options_.bounded && too_old) parameters_->Bring(nullptr);
  clock_ = token.clock();
  values_until_clock_ = token.values_until_clock();
}

absl::StatusOr<ParameterGate*> PsExchange::Prepare(
    absl::Span<const SeededBatch> /*batches*/, const StepToken& token) {
  RETURN_IF_ERROR(parameters_->Begin(token));
  return parameters_.get();
}

absl::Status PsExchange::OnForward(double loss) {
  if (!options_.early) return absl::OkStatus();
  is_held_ = !options_.allow_non_finite && !std::isfinite(loss);
  if (is_held_) return absl::OkStatus();
  RETURN_IF_ERROR(parameters_->Finish());
  return BeginPush();
}

void PsExchange::OnGradient(int parameter) {
  if (!options_.early || is_held_ || push_ == nullptr) return;
  is_held_ = !options_.allow_non_finite &&
             FirstNonFinite(options_.gradients[parameter]) >= 0;
  if (!is_held_) push_->Release(parameter);
}

absl::Status PsExchange::OnComputed(const absl::Status& computed,
                                    StepTimes* times) {
  return parameters_->OnComputed(computed, times);
}

void PsExchange::Describe(ComputedStep* computed) const {
  computed->push_begun = push_ != nullptr && push_->has_left();
}

absl::Status PsExchange::BeginPush() {
  if (push_ != nullptr) return absl::OkStatus();
  absl::Span<const MutableTensorView> into;
  const bool may_bring = !options_.bounded || clock_ < values_until_clock_;
  if (options_.brings_values && may_bring) into = parameters_->into();
  ASSIGN_OR_RETURN(push_, options_.client->BeginPush(
                              step_, round_, views_, into,
                              parameters_->versions(), {rows_, row_versions_}));
  return absl::OkStatus();
}

absl::Status PsExchange::Send() {
  RETURN_IF_ERROR(BeginPush());
  push_->ReleaseOthers();
  return absl::OkStatus();
}

absl::StatusOr<StepResult> PsExchange::Finish() {
  ASSIGN_OR_RETURN(PushResult outcome, push_->Finish());
  // The next step pulls after a resumed push: what was brought before it is too
  // old by now.
  if (!is_resumed_) parameters_->Bring(std::move(outcome.new_versions));
  bytes_.sent += outcome.sent_bytes;
  bytes_.sent_float32 += outcome.float32_bytes;
  bytes_.sent_to_others += outcome.others_bytes;
  ++bytes_.pushes;
  StepResult result;
  for (const SliceSend& send : outcome.sends) {
    result.pushed = std::max(result.pushed, send.acknowledged);
  }
  result.sends = std::move(outcome.sends);
  result.staleness = std::llround(outcome.mean_staleness);
  result.late = outcome.late;
  return result;
}

void PsExchange::Resume() {
  is_resumed_ = true;
  options_.client->Resume(push_.get());
}

ExchangedBytes PsExchange::bytes() const {
  ExchangedBytes bytes = bytes_;
  const int64_t of_rows = options_.client->pulled_row_bytes();
  bytes.received = parameters_->received_bytes() + of_rows;
  bytes.received_float32 = parameters_->float32_bytes() + of_rows;
  bytes.received_from_others = parameters_->others_bytes() + of_rows;
  return bytes;
}

}  // namespace muster
