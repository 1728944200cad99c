#ifndef TESTS_SIMULATION_COUNTING_STEPS_H_
#define TESTS_SIMULATION_COUNTING_STEPS_H_

#include <cstdint>
#include <vector>

#include "tests/simulation/oracle.h"
#include "tests/simulation/random.h"
#include "tests/simulation/sim_model.h"
#include "tests/simulation/sim_process.h"
#include "worker/client/parameter_client.h"
#include "worker/step_runner.h"

namespace muster {

// Steps as TrainLoop takes them, but the gradient counts: -kUnit at this
// worker's element of every tensor, which a learning rate of 1 makes +kUnit.
// Integers up to 2^24 are exact in float32.
class CountingSteps : public StepRunner {
 public:
  // All outlive the steps.
  CountingSteps(const SimProcess* process, Oracle* oracle,
                const SimModel* model, ParameterClient* client,
                const Sender& sender);

  absl::Status Enter(const EnterEpoch& epoch) override;
  absl::StatusOr<StepReport> Run(int64_t step, const StepToken& token,
                                 const BeforePush& before_push) override;

 private:
  const SimProcess* const process_;
  Oracle* const oracle_;
  const SimModel* const model_;
  ParameterClient* const client_;
  const Sender sender_;
  Random random_;
  TensorValues values_;
  TensorValues gradients_;
  EnterEpoch epoch_;
  int64_t position_ = 0;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_COUNTING_STEPS_H_
