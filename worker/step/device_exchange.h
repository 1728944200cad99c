#ifndef WORKER_STEP_DEVICE_EXCHANGE_H_
#define WORKER_STEP_DEVICE_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "worker/client/client_model.h"
#include "worker/client/parameter_client.h"
#include "worker/executor/device_update.h"
#include "worker/step/step_exchange.h"

namespace muster {

// An exchange without values: the device of the only tower keeps the parameters
// and updates them there, one batch a step, and the shard of this process
// counts (ParameterClient::KeepOnDevice).
class DeviceExchange : public StepExchange {
 public:
  // All outlive the exchange. REQUIRES: asynchronous replication; nobody
  // changes gradients; `update` is the model's.
  DeviceExchange(ParameterClient* client, const Clock* clock,
                 DeviceUpdate* update)
      : client_(client), clock_(clock), update_(update) {}

  void Enter(int64_t model_epoch,
             absl::Span<const uint64_t> ps_incarnations) override;
  void BeginStep(int64_t step, const StepToken& token) override;
  void SetCounts(StepCounts counts) override {
    client_->SetCounts(std::move(counts));
  }
  // Errors besides: those of ParameterClient::KeepOnDevice.
  absl::StatusOr<ParameterGate*> Prepare(absl::Span<const SeededBatch> batches,
                                         const StepToken& token) override;
  absl::Status OnComputed(const absl::Status& computed,
                          StepTimes* times) override;
  void Describe(ComputedStep* computed) const override;
  absl::Status Send() override { return absl::OkStatus(); }
  absl::StatusOr<StepResult> Finish() override;
  void EndStep() override {}

 private:
  ParameterClient* const client_;
  const Clock* const clock_;
  DeviceUpdate* const update_;
  int64_t step_ = 0;
  // In this epoch.
  bool is_kept_ = false;
  // The versions that the last update made; null after Prepare.
  std::shared_ptr<const PulledVersions> brought_;
  // The versions that the step is computed from.
  std::shared_ptr<const PulledVersions> versions_;
  absl::Time prepared_;
};

}  // namespace muster

#endif  // WORKER_STEP_DEVICE_EXCHANGE_H_
