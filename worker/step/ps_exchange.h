#ifndef WORKER_STEP_PS_EXCHANGE_H_
#define WORKER_STEP_PS_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/client/client_model.h"
#include "worker/client/parameter_client.h"
#include "worker/client/push.h"
#include "worker/client/table_rows.h"
#include "worker/step/step_exchange.h"
#include "worker/step/step_parameters.h"

namespace muster {

// An exchange with ps tasks: parameters come as StepParameters has them, and
// the gradients are pushed from where they lie.
//
// With `early` a gradient leaves in mid-backward, when it is final, while those
// of the layers before it are still computed. What is pushed is the same, to
// the bit, as after the step. A step may yet be refused when something has
// left. So that nothing that is not finite leaves, each gradient is looked at
// before, and the loss before the first; from the first that is not finite on,
// all wait for Send. A push that is given up: see Push.
class PsExchange : public StepExchange {
 public:
  struct Options {
    // Outlives the exchange.
    ParameterClient* client = nullptr;
    // One a tensor; the same in every step but for PushFrom.
    std::vector<absl::Span<float>> gradients;
    // REQUIRES: nobody changes a gradient when it was heard of.
    bool early = false;
    // Whether what is not finite may leave early.
    bool allow_non_finite = false;
    // The push brings new values, to parameters->into(). With `early` they come
    // while the step is computed.
    bool brings_values = false;
    // Only values that the steps' tokens allow are asked for, and used.
    bool bounded = false;
  };

  PsExchange(Options options, std::unique_ptr<StepParameters> parameters);

  void Enter(int64_t model_epoch,
             absl::Span<const uint64_t> ps_incarnations) override;
  void BeginStep(int64_t step, const StepToken& token) override;
  void SetCounts(StepCounts counts) override {
    options_.client->SetCounts(std::move(counts));
  }
  absl::StatusOr<ParameterGate*> Prepare(absl::Span<const SeededBatch> batches,
                                         const StepToken& token) override;
  // Waits for all parameters before the first gradient may leave.
  absl::Status OnForward(double loss) override;
  void OnGradient(int parameter) override;
  absl::Status OnComputed(const absl::Status& computed,
                          StepTimes* times) override;
  void Describe(ComputedStep* computed) const override;
  // From now on pushes these, one a tensor, instead of options.gradients; what
  // has left in this step has left. Not between Send and EndStep.
  void PushFrom(std::vector<absl::Span<float>> gradients);
  // The same for one, whose OnGradient may follow.
  void PushFrom(int parameter, absl::Span<float> gradient);
  // The rows of tables that the step that began pushes, and the versions of
  // those that it pulled (ParameterClient::PullRows); the rows are read until
  // EndStep.
  void PushRows(std::vector<RowGradients> rows, std::vector<int64_t> versions) {
    rows_ = std::move(rows);
    row_versions_ = std::move(versions);
  }
  absl::Status Send() override;
  absl::StatusOr<StepResult> Finish() override;
  bool may_resume() const override {
    return push_ != nullptr && push_->may_resume();
  }
  void Resume() override;
  void EndStep() override {
    push_ = nullptr;
    PushRows({}, {});
  }
  ExchangedBytes bytes() const override;

 protected:
  StepParameters& parameters() { return *parameters_; }
  // From BeginPush to EndStep.
  bool is_pushing() const { return push_ != nullptr; }
  // Nothing leaves yet. The gradients are, or will be, of the parameters as
  // they are now, which must have come.
  absl::Status BeginPush();

 private:
  // Lets the push know where a gradient lies that has not left.
  void Place(int parameter);

  Options options_;
  // The gradients.
  std::vector<TensorView> views_;
  const std::unique_ptr<StepParameters> parameters_;
  // Of the step.
  std::vector<RowGradients> rows_;
  std::vector<int64_t> row_versions_;
  int64_t step_ = 0;
  int64_t round_ = 0;
  // As the step's token has them.
  int64_t clock_ = 0;
  int64_t values_until_clock_ = 0;
  // Null until something may leave.
  std::unique_ptr<Push> push_;
  // Something is not finite.
  bool is_held_ = false;
  // The epoch may have been entered once more since the push began.
  bool is_resumed_ = false;
  // Of what was sent.
  ExchangedBytes bytes_;
};

}  // namespace muster

#endif  // WORKER_STEP_PS_EXCHANGE_H_
