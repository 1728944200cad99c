#ifndef TESTS_SIMULATION_COUNTING_STEPS_H_
#define TESTS_SIMULATION_COUNTING_STEPS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "proto/row_ledger.pb.h"
#include "tests/simulation/bug.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/random.h"
#include "tests/simulation/sim_model.h"
#include "tests/simulation/sim_process.h"
#include "worker/client/client_model.h"
#include "worker/client/parameter_client.h"
#include "worker/client/push.h"
#include "worker/session/step_runner.h"

namespace muster {

// Steps as TrainLoop takes them, but the gradient counts: -kUnit times the
// step's own value at this worker's counter of every block, which a learning
// rate of 1 makes a plus; of state, the plus itself. Integers up to 2^24 are
// exact in float32.
class CountingSteps : public StepRunner {
 public:
  // All outlive the steps.
  CountingSteps(const SimProcess* process, Oracle* oracle,
                const SimModel* model, ParameterClient* client,
                const Sender& sender, Bug bug);

  absl::Status Enter(const EnterEpoch& epoch) override;
  absl::StatusOr<StepReport> Run(int64_t step, const StepGrant& grant,
                                 const BeforePush& before_push) override;
  bool may_resume() const override;
  absl::StatusOr<StepReport> Resume() override;

 private:
  // The end of a step, whose push is over.
  absl::StatusOr<StepReport> Conclude(absl::StatusOr<PushResult> outcome);
  // Makes the gradients those of this step.
  void SetGradients(int64_t step);
  // Says on the step's push what is counted with it.
  void SetCounts(const StepToken& token);
  // Makes the rows those of the grant. What was prepared for others is dropped.
  void SetRows(int64_t step, const StepGrant& grant);
  std::vector<TensorView> Views() const;
  absl::Status PullAndCompute(const StepToken& token, absl::Duration compute);
  absl::StatusOr<PushResult> ComputeAndPush(int64_t step,
                                            const StepToken& token,
                                            const BeforePush& before_push);
  absl::StatusOr<PushResult> PushAndComputeNext(int64_t step,
                                                const BeforePush& before_push);

  const SimProcess* const process_;
  Oracle* const oracle_;
  const SimModel* const model_;
  ParameterClient* const client_;
  const Sender sender_;
  const Bug bug_;
  Random random_;
  TensorValues values_;
  // The values that a push brings while the next step is computed.
  TensorValues arrivals_;
  TensorValues gradients_;
  // The versions that the gradients are computed from, and those that the last
  // push brought.
  std::shared_ptr<const PulledVersions> versions_;
  std::shared_ptr<const PulledVersions> brought_;
  // The oracle's changes() when these were asked for, and the last clock for
  // which they serve.
  int64_t changes_at_push_ = 0;
  int64_t values_until_clock_ = 0;
  // The next step's gradients are there, of the rows that were prepared.
  bool is_computed_ = false;
  // The newest step's rows, as granted, and those that are prepared ahead.
  RowLease rows_;
  std::optional<RowLease> prepared_;
  // The newest step, its round, and its push, until that is over.
  int64_t step_ = 0;
  int64_t round_ = 0;
  std::unique_ptr<Push> push_;
  EnterEpoch epoch_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_COUNTING_STEPS_H_
