#ifndef WORKER_STEP_TRAIN_LOOP_H_
#define WORKER_STEP_TRAIN_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "worker/executor/device_trace.h"
#include "worker/executor/parameter_gate.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/input_pipeline.h"
#include "worker/input/stream/example_stream.h"
#include "worker/session/step_runner.h"
#include "worker/step/step_exchange.h"
#include "worker/tower/computed_step.h"
#include "worker/tower/tower_group.h"

namespace muster {

// One worker's steps: rows from its data, parameters from an exchange, forward
// and backward of each tower, the mean of their gradients to the exchange. The
// forward pass begins while the parameters are on their way.
//
// With an exchange that computes ahead Run computes the gradient of the next
// step while it pushes this one's. The next Run begins with it. It is thrown
// away, and its rows are used again, when a step fails or an epoch is entered.
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
    StepExchange* exchange = nullptr;
    TowerGroup* towers = nullptr;
    // Null: open_stream has the rows.
    const DataSet* data_set = nullptr;
    OpenStream open_stream;
    // For StepTimes.
    const Clock* clock = SystemClock();
    // start is overwritten by Enter, and the numbers of batches by the towers'
    // own.
    InputPipeline::Options input;
    // Changes them in place when the hooks have seen them and let them pass,
    // before they are given; null: they are given as they are. REQUIRES: null
    // if the exchange lets them leave early or keeps them on a device.
    ChangeGradients change_gradients;
    // The steps whose StepTimes::devices are wanted.
    ProfiledSteps profiled;
  };

  // Errors: those of InputPipeline::Create.
  static absl::StatusOr<std::unique_ptr<TrainLoop>> Create(
      const Options& options);

  absl::Status Enter(const EnterEpoch& epoch) override;
  absl::StatusOr<StepReport> Run(int64_t step, const StepToken& token,
                                 const BeforePush& before_push) override;
  bool may_resume() const override { return unfinished_.has_value(); }
  absl::StatusOr<StepReport> Resume() override;

  // Ends a Run that waits for rows, and all later ones that would, as stopped
  // (IsStopped); the step is given up. From any thread.
  void StopReading();

  // Local steps of each worker in one epoch; 0: not known.
  int64_t steps_per_epoch() const { return pipeline_->steps_per_epoch(); }

 private:
  // A step whose gradients are with some of the shards, and where its rows
  // begin.
  struct Unfinished {
    StepReport report;
    DataPosition begun_at;
  };

  explicit TrainLoop(const Options& options);

  InputData data() const;
  // Reads the rows of a step, unless they are there.
  absl::Status Read(StepTimes* times);
  void ReadFrom(std::unique_ptr<InputPipeline> pipeline);
  // Makes `position` the next step's.
  absl::Status GoTo(const DataPosition& position);
  // Empty unless the step is one of those profiled.
  std::vector<DeviceTrace> NewTraces(int64_t step) const;
  // Lets its parameters come and reads its rows, together if that can be.
  absl::StatusOr<ParameterGate*> Prepare(const StepToken& token,
                                         StepTimes* times);
  absl::Status RunTowers(ParameterGate* gate, StepTimes* times);
  // Says on the step's push what the worker has done by then.
  void SetCounts(const StepToken& token, const DataPosition& position,
                 int64_t examples);
  // Prepares and computes the next step.
  absl::Status Compute(int64_t step, const StepToken& token);
  // Gives the gradients, while it computes the next step if it can.
  absl::StatusOr<StepResult> Exchange(int64_t step);
  absl::StatusOr<StepResult> ComputeAheadAndFinish(int64_t next);
  // Ends the step that was given, or was not.
  absl::StatusOr<StepReport> Conclude(Unfinished step,
                                      absl::StatusOr<StepResult> result);
  void GiveUpUnfinished();
  // Makes seeds for the batches of the pipeline's step `number`.
  void AddSeeds(absl::Span<const Batch> batches, uint64_t number,
                std::vector<SeededBatch>* seeded) const;
  uint64_t SeedOf(uint64_t step_number, int64_t batch) const;
  ComputedStep Computed(const StepReport& report) const;
  absl::Time Now() const { return options_.clock->Now(); }

  Options options_;
  StepExchange& exchange_;
  const StepExchange::Capabilities capabilities_;
  // Of the thread that runs the steps; StopReading's is the same.
  std::unique_ptr<InputPipeline> pipeline_;
  // Read but not yet trained on; empty if none.
  std::vector<SeededBatch> batches_;
  // Where those were read that were read last.
  DataPosition read_at_;
  // Those after them, if they are prepared; for one call.
  std::vector<SeededBatch> next_;
  // The step that is computed and not given, as far as it is known by then.
  std::optional<StepReport> computed_;
  std::optional<Unfinished> unfinished_;
  // The towers' gradients of trainable tensors.
  std::vector<absl::Span<float>> trainable_;
  // All tensors, for hooks.
  std::vector<StepTensor> tensors_;

  absl::Mutex mu_;
  InputPipeline* stoppable_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool is_stopped_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster

#endif  // WORKER_STEP_TRAIN_LOOP_H_
