#include "worker/step/device_exchange.h"

#include <cmath>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/client/push.h"

namespace muster {

void DeviceExchange::Enter(int64_t model_epoch,
                           absl::Span<const uint64_t> ps_incarnations) {
  brought_ = nullptr;
  is_kept_ = false;
  client_->SetEpoch(model_epoch, ps_incarnations);
}

void DeviceExchange::BeginStep(int64_t step, const StepToken& token) {
  client_->SettlePush(token);
  client_->SetLearningRateFactor(token.learning_rate_factor());
  step_ = step;
}

absl::StatusOr<ParameterGate*> DeviceExchange::Prepare(
    absl::Span<const SeededBatch> /*batches*/, const StepToken& /*token*/) {
  if (brought_ == nullptr) {
    if (!is_kept_) RETURN_IF_ERROR(client_->KeepOnDevice(update_));
    is_kept_ = true;
    ASSIGN_OR_RETURN(brought_, client_->PullVersions());
  }
  versions_ = std::exchange(brought_, nullptr);
  prepared_ = clock_->Now();
  return nullptr;
}

absl::Status DeviceExchange::OnComputed(const absl::Status& computed,
                                        StepTimes* times) {
  times->pull_begun = times->pulled = prepared_;
  return computed;
}

void DeviceExchange::Describe(ComputedStep* computed) const {
  computed->gradients_are_finite = update_->gradients_are_finite();
  computed->fetch_tensors = [update = update_] {
    return update->FetchTensors();
  };
}

absl::StatusOr<StepResult> DeviceExchange::Finish() {
  ASSIGN_OR_RETURN(PushResult outcome,
                   client_->UpdateOnDevice(step_, *versions_));
  update_->Start();
  brought_ = std::move(outcome.new_versions);
  StepResult result;
  result.pushed = clock_->Now();
  result.staleness = std::llround(outcome.mean_staleness);
  return result;
}

}  // namespace muster
