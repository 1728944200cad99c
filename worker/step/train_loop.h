#ifndef WORKER_STEP_TRAIN_LOOP_H_
#define WORKER_STEP_TRAIN_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "proto/row_ledger.pb.h"
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
// step while it pushes this one's, if the rows of that are leased. The next Run
// begins with it. It is thrown away when a step fails, an epoch is entered or
// the next step has other rows. Rows at hand are used again by whatever step
// has the same ones.
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
    // The numbers of batches are overwritten by the towers' own.
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
  absl::StatusOr<StepReport> Run(int64_t step, const StepGrant& grant,
                                 const BeforePush& before_push) override;
  bool may_resume() const override { return unfinished_.has_value(); }
  absl::StatusOr<StepReport> Resume() override;
  void TraceDevices(const ProfiledSteps& steps) override { traced_ = steps; }

  // Ends a Run that waits for rows, and all later ones that would, as stopped
  // (IsStopped); the step is given up. From any thread.
  void StopReading() { pipeline_->Stop(); }

  // Rows of one epoch; 0: not known.
  int64_t epoch_rows() const { return pipeline_->epoch_rows(); }

 private:
  explicit TrainLoop(const Options& options);

  InputData data() const;
  // Makes the rows of a step, and of those after it, the next ones, but for
  // what is at hand of the step.
  void UseLeases(const StepGrant& grant);
  // Reads the rows of a step, unless they are there.
  absl::Status Read(const RowLease& lease, StepTimes* times);
  // Empty unless the step is one of those profiled.
  std::vector<DeviceTrace> NewTraces(int64_t step) const;
  // Lets its parameters come and reads its rows, together if that can be.
  absl::StatusOr<ParameterGate*> Prepare(const StepToken& token,
                                         const RowLease& lease,
                                         StepTimes* times);
  absl::Status RunTowers(ParameterGate* gate, StepTimes* times);
  // Says on the step's push what the worker has done by then.
  void SetCounts(const StepToken& token, int64_t examples);
  // Prepares and computes the next step.
  absl::Status Compute(int64_t step, const StepToken& token,
                       const RowLease& lease);
  // Gives the gradients, while it computes the next step if it can.
  absl::StatusOr<StepResult> Exchange(int64_t step, const StepGrant& grant);
  absl::StatusOr<StepResult> ComputeAheadAndFinish(int64_t next,
                                                   const RowLease& lease);
  // Ends the step that was given, or was not.
  absl::StatusOr<StepReport> Conclude(StepReport report,
                                      absl::StatusOr<StepResult> result);
  void GiveUpUnfinished();
  // Makes seeds for the batches of a lease.
  void AddSeeds(absl::Span<const Batch> batches, const RowLease& lease,
                std::vector<SeededBatch>* seeded) const;
  uint64_t SeedOf(int64_t place) const;
  ComputedStep Computed(const StepReport& report) const;
  absl::Time Now() const { return options_.clock->Now(); }

  Options options_;
  StepExchange& exchange_;
  const StepExchange::Capabilities capabilities_;
  // Constant after Create.
  std::unique_ptr<InputPipeline> pipeline_;
  // Those that were read last; empty if none.
  std::vector<SeededBatch> batches_;
  // Their rows.
  RowLease lease_;
  // Those after them, if they are prepared; for one call.
  std::vector<SeededBatch> next_;
  // Besides options_.profiled.
  ProfiledSteps traced_;
  // The step that is computed and not given, as far as it is known by then.
  std::optional<StepReport> computed_;
  // The step whose gradients are with some of the shards.
  std::optional<StepReport> unfinished_;
  // The towers' gradients of trainable tensors.
  std::vector<absl::Span<float>> trainable_;
  // All tensors, for hooks.
  std::vector<StepTensor> tensors_;
};

}  // namespace muster

#endif  // WORKER_STEP_TRAIN_LOOP_H_
