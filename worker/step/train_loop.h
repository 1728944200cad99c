#ifndef WORKER_STEP_TRAIN_LOOP_H_
#define WORKER_STEP_TRAIN_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/tensor/aligned_buffer.h"
#include "worker/client/parameter_client.h"
#include "worker/client/push.h"
#include "worker/executor/device_trace.h"
#include "worker/executor/device_update.h"
#include "worker/input/data_set.h"
#include "worker/input/input_pipeline.h"
#include "worker/session/step_runner.h"
#include "worker/step/step_parameters.h"
#include "worker/step/step_push.h"
#include "worker/tower/computed_step.h"
#include "worker/tower/tower_group.h"

namespace muster {

// One worker's steps: pull into the memory that all towers read, forward and
// backward of each, push the mean of their gradients from where it lies. The
// forward pass begins while the pull is on its way.
//
// With a pipeline_depth of 2 Run computes the gradient of the next step while
// it pushes this one's, from what the push before it has brought. The next Run
// begins with it. It is thrown away, and its rows are used again, when a step
// fails or an epoch is entered.
//
// Nothing large is allocated after the first step. One thread.
class TrainLoop : public StepRunner {
 public:
  // The mean gradients of one step of this worker: of the trainable tensors, in
  // creation order.
  using ChangeGradients =
      std::function<void(absl::Span<const absl::Span<float>> gradients)>;

  // The pointers outlive the loop.
  struct Options {
    ParameterClient* client = nullptr;
    TowerGroup* towers = nullptr;
    const DataSet* data_set = nullptr;
    // For StepTimes.
    const Clock* clock = SystemClock();
    // start is overwritten by Enter, and the numbers of batches by the towers'
    // own.
    InputPipeline::Options input;
    // Changes them in place when the hooks have seen them and let them pass,
    // before they are pushed; null: they are pushed as they are.
    ChangeGradients change_gradients;
    // A gradient is pushed as soon as the backward pass has made it (StepPush),
    // where it is not changed, encoded or averaged after it.
    bool push_early = true;
    // Each push brings the values of the next step (asynchronous replication);
    // else every step begins with a pull.
    bool pull_with_push = false;
    // AsyncReplication.pull is IN_PLACE: the towers read the shards' memory, if
    // they can. REQUIRES: pull_with_push.
    bool pull_in_place = false;
    // Gets a line if they cannot.
    std::function<void(const std::string&)> say;
    // Of the only tower's model: the parameters are held and updated there.
    // REQUIRES: pull_with_push, not pull_in_place, no pipeline; a shard of this
    // process; one batch a step; no change_gradients.
    DeviceUpdate* update = nullptr;
    // A hook may look at parameters in BeforePush: they stay until then (but
    // for those in place), though gradients leave early, and the next step
    // begins with a pull.
    bool hooks_read_parameters = false;
    // What is not finite may leave early, too.
    bool allow_non_finite = false;
    // StepTimes::devices is of these.
    ProfiledSteps profiled;
    // AsyncReplication.pipeline_depth. 2 wants pull_with_push.
    int pipeline_depth = 1;
  };

  // Errors: those of InputPipeline::Create.
  static absl::StatusOr<std::unique_ptr<TrainLoop>> Create(
      const Options& options);

  absl::Status Enter(const EnterEpoch& epoch) override;
  absl::StatusOr<StepReport> Run(int64_t step, const StepToken& token,
                                 const BeforePush& before_push) override;

  // Of the values of all pushes that came through: as they were sent, each part
  // counted once, and what they take as float32.
  int64_t sent_bytes() const { return sent_bytes_; }
  int64_t float32_bytes() const { return float32_bytes_; }
  // What the steps are computed from.
  const StepParameters& parameters() const { return *parameters_; }

  // Local steps of each worker in one epoch.
  int64_t steps_per_epoch() const { return pipeline_->steps_per_epoch(); }

 private:
  explicit TrainLoop(const Options& options);

  // Reads the rows of a step, unless they are there.
  absl::Status Read();
  // Makes `position` the next step's.
  absl::Status GoTo(const DataPosition& position);
  bool CanPushEarly() const;
  bool is_pipelined() const { return options_.pipeline_depth > 1; }
  StepParameters::Options ParameterOptions();
  void ReadParametersFrom(absl::Span<const float* const> values);
  void PlacePushed();
  bool BringsValues() const;
  // Empty unless the step is one of those profiled.
  std::vector<DeviceTrace> NewTraces(int64_t step) const;
  // Begins and computes the next step, of which `listener` hears.
  absl::Status BeginAndCompute(const StepToken& token, StepPush* listener);
  // With the parameters that have begun.
  absl::Status Compute(StepPush* listener);
  absl::Status RunTowers(StepPush* listener, absl::Span<DeviceTrace> traces);
  void ComputeAhead(int64_t step);
  // Pushes, while it computes the next step if there is to be one.
  absl::StatusOr<PushResult> Push(StepPush* push);
  absl::StatusOr<PushResult> PushAndComputeAhead(StepPush* push);
  absl::Status Finish(StepPush* push, StepReport* report);
  // What the loop knows of the batches of the pipeline's step `number`.
  void AddSeeds(absl::Span<const Batch> batches, uint64_t number,
                std::vector<SeededBatch>* seeded) const;
  uint64_t SeedOf(uint64_t step_number, int64_t batch) const;
  ComputedStep Computed(const StepReport& report, const StepPush& push) const;
  absl::Time Now() const { return options_.clock->Now(); }

  Options options_;
  std::unique_ptr<InputPipeline> pipeline_;
  // Read but not yet trained on; empty if none.
  std::vector<SeededBatch> batches_;
  // Where those were read that were read last.
  DataPosition read_at_;
  // Those after them, if they are prepared; for one call.
  std::vector<SeededBatch> next_;
  // In the first tower's memory.
  std::unique_ptr<StepParameters> parameters_;
  // What is computed and not pushed: of the report, what is known by then.
  std::optional<StepReport> computed_;
  // With what is pushed: the towers' gradients, or a copy of them if they are
  // written while they are on their way.
  StepPush::Options push_;
  AlignedBuffer copy_;
  std::vector<absl::Span<float>> copies_;
  // Of the towers' gradients, those of trainable tensors.
  std::vector<absl::Span<float>> trainable_;
  // The same, for hooks.
  std::vector<StepTensor> tensors_;
  int64_t sent_bytes_ = 0;
  int64_t float32_bytes_ = 0;
};

}  // namespace muster

#endif  // WORKER_STEP_TRAIN_LOOP_H_
