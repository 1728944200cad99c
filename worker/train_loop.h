#ifndef WORKER_TRAIN_LOOP_H_
#define WORKER_TRAIN_LOOP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/client/parameter_client.h"
#include "worker/client/tensor_view.h"
#include "worker/computed_step.h"
#include "worker/input/data_set.h"
#include "worker/input/input_pipeline.h"
#include "worker/model/compiled_model.h"
#include "worker/step_runner.h"

namespace muster {

// One worker's steps: pull into the model's own memory, forward and backward,
// push the gradients from where they lie. Nothing large is allocated after the
// first step. One thread.
class TrainLoop : public StepRunner {
 public:
  // The pointers outlive the loop.
  struct Options {
    ParameterClient* client = nullptr;
    // In train mode.
    CompiledModel* model = nullptr;
    const DataSet* data_set = nullptr;
    // For StepTimes.
    const Clock* clock = SystemClock();
    // start_step is overwritten by Enter.
    InputPipeline::Options input;
  };

  // Errors: those of InputPipeline::Create.
  static absl::StatusOr<std::unique_ptr<TrainLoop>> Create(
      const Options& options);

  absl::Status Enter(const EnterEpoch& epoch) override;
  absl::StatusOr<StepReport> Run(int64_t step, const StepToken& token,
                                 const BeforePush& before_push) override;

  // Local steps of each worker in one epoch.
  int64_t steps_per_epoch() const { return pipeline_->steps_per_epoch(); }

 private:
  explicit TrainLoop(const Options& options);

  absl::Time Now() const { return options_.clock->Now(); }

  Options options_;
  std::unique_ptr<InputPipeline> pipeline_;
  // Read but not yet trained on; null if none.
  const Batch* batch_ = nullptr;
  // The model's parameters and gradients.
  std::vector<MutableTensorView> parameters_;
  std::vector<TensorView> gradients_;
  // The same, for hooks.
  std::vector<StepTensor> tensors_;
};

}  // namespace muster

#endif  // WORKER_TRAIN_LOOP_H_
