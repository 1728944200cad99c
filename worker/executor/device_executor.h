#ifndef WORKER_EXECUTOR_DEVICE_EXECUTOR_H_
#define WORKER_EXECUTOR_DEVICE_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/reporter.h"
#include "worker/backend/device_mean.h"
#include "worker/backend/device_streams.h"
#include "worker/executor/device_timer.h"
#include "worker/executor/device_update.h"
#include "worker/executor/plan_executor.h"
#include "worker/executor/result_copies.h"
#include "worker/executor/staging_area.h"
#include "worker/executor/step_segments.h"

namespace muster {

// Executes a plan in the memory of a device with streams. Parameters and
// gradients stay in host memory too, which is pinned: each step copies every
// parameter that it reads to the device, and every gradient back.
//
//   kToDevice   batch, seeds, parameters in the order of the forward pass
//   kCompute      segments of instructions; each waits for what it reads first
//   kToHost         loss, gradients as they are final, at the end the results
//
// A step puts all of it into the streams and then awaits loss and gradients one
// after another, and tells the listener, while the device still computes. Then
// nothing of it is left in the streams, also if it failed.
//
// A training has two step buffers, each with memory for a batch, which steps
// take in turns. So the next batch goes to the other one while a step computes,
// if it is known; that copy may be left in kToDevice.
//
// With UpdateOnDevice parameters and gradients stay on the device, where they
// are updated; a step copies none of them, and counts at its end which
// gradients are not finite. It has no more segments than the loss makes.
//
// With graphs the second and the third step of a training capture each segment,
// for one buffer each, and from then on a segment is one launch. All else is
// the same.
//
// In a step with a trace timed events lie around each segment and each copy, so
// between graphs, not in them.
class DeviceExecutor : public PlanExecutor {
 public:
  struct Options {
    bool use_graphs = true;
    // Hears why steps are not captured.
    Reporter reporter;
    // CompileOptions: mean, mean_member, keeps_mean.
    DeviceMean* mean = nullptr;
    int mean_member = 0;
    bool keeps_mean = true;
  };

  // `streams` outlives the executor. Errors: Unimplemented if the model does
  // not compute in float32; those of DeviceStreams.
  static absl::StatusOr<std::unique_ptr<DeviceExecutor>> Create(
      const ExecutedModel& model, DeviceStreams* streams,
      const Options& options);

  DeviceExecutor(const DeviceExecutor&) = delete;
  DeviceExecutor& operator=(const DeviceExecutor&) = delete;

  // Errors besides: those of DeviceStreams; InvalidArgument if a label is out
  // of range, before anything is done; Cancelled if another member of the mean
  // has failed.
  absl::Status Run(const Step& step) override;
  void Skip(const absl::Status& why) override;
  // Each step reads them where they are then.
  void OnParametersMoved() override {}
  absl::StatusOr<DeviceUpdate*> UpdateOnDevice(std::unique_ptr<DeviceRule> rule,
                                               int num_slots) override;
  const void* Result(int buffer) const override {
    return results_->Result(buffer);
  }
  int64_t arena_bytes() const override { return arena_->size_bytes(); }

 private:
  using Stream = DeviceStreams::Stream;
  using Event = DeviceStreams::Event;
  using Graph = DeviceStreams::Graph;
  // A step's own memory on the device.
  struct StepBuffer {
    std::unique_ptr<StagingArea> staging;
    // By instruction.
    std::vector<Operands> operands;
    // By segment; empty if none is captured.
    std::vector<std::unique_ptr<Graph>> graphs;
  };

  DeviceExecutor(const ExecutedModel& model, DeviceStreams* streams,
                 const Options& options)
      : model_(model),
        streams_(streams),
        reporter_(options.reporter),
        mean_(options.mean),
        mean_member_(options.mean_member),
        keeps_mean_(options.keeps_mean),
        timer_(streams),
        use_graphs_(options.use_graphs && model.is_training) {}

  absl::Status Allocate();
  absl::Status PinParameters();
  absl::Status CreateStepBuffers();
  absl::Status CreateEvents();
  void BindOperandsToDevice(StepBuffer* step_buffer) const;
  // The memory of a buffer of the plan, as this step buffer has it.
  char* DeviceData(int buffer, const StepBuffer& step_buffer) const;
  int64_t CountSeeds() const;

  // Nobody else uses the streams meanwhile.
  absl::Status RunAlone(const Step& step);
  absl::Status RunOnStreams(const Step& step);
  absl::Status Begin(const Step& step);
  absl::Status Compute(const Step& step);
  absl::Status TakeStepBuffer(const Step& step);
  absl::Status Stage(const SeededBatch& batch, StepBuffer* step_buffer);
  absl::Status StageNext(const SeededBatch& next);
  StepBuffer& other_buffer() {
    return buffers_[(current_ + 1) % buffers_.size()];
  }
  absl::Status SendParameters(absl::Span<const int> parameters,
                              ParameterGate* gate);
  absl::Status LetComputeWaitForParameters();
  void Capture();
  absl::StatusOr<std::vector<std::unique_ptr<Graph>>> TryCapture();
  absl::Status EnqueueSegment(size_t index, ParameterGate* gate);
  absl::Status ComputeSegment(size_t index);
  absl::Status ExecuteInstructions(const Segment& segment);
  absl::Status EnqueueDelivery(size_t index);
  absl::Status EnqueueGradient(int parameter);
  absl::Status EnqueueResults();
  absl::Status AwaitDeliveries(StepListener* listener);
  absl::Status Tell(const Segment& segment, StepListener* listener) const;

  const ExecutedModel model_;
  DeviceStreams* const streams_;
  const Reporter reporter_;
  DeviceMean* const mean_;
  const int mean_member_;
  const bool keeps_mean_;

  // By buffer of the plan, if it is in arena_; else -1.
  std::vector<int64_t> arena_offsets_;
  std::unique_ptr<DeviceStreams::Buffer> arena_;
  // As in ParameterPlaces.
  std::unique_ptr<DeviceStreams::Buffer> values_;
  std::unique_ptr<DeviceStreams::Buffer> gradients_;
  std::unique_ptr<DeviceStreams::Pin> pinned_values_;
  std::unique_ptr<DeviceStreams::Pin> pinned_gradients_;
  std::unique_ptr<ResultCopies> results_;
  // Null: the host has the parameters.
  std::unique_ptr<DeviceUpdate> update_;
  // Two for training; one for evaluation, whose batches are not known before.
  std::vector<StepBuffer> buffers_;
  // The buffer of the step that is computed, or of the last one.
  size_t current_ = 0;
  // The seeds that Stage sends; here, so that it allocates nothing.
  std::vector<uint64_t> seeds_;
  std::vector<Segment> segments_;
  // By segment: in kToHost, its gradients and loss have arrived; null if it has
  // none. The last one's is the end of all.
  std::vector<std::unique_ptr<Event>> arrived_;

  // Between streams: the last parameter that was put into kToDevice, the last
  // segment that was put into kCompute, the copy of the loss in kToHost.
  // Recorded again and again.
  std::unique_ptr<Event> sent_;
  std::unique_ptr<Event> computed_;
  std::unique_ptr<Event> fetched_;

  // With UpdateOnDevice the update's, too, under its mu().
  DeviceTimer timer_;

  bool use_graphs_;
  // A step has succeeded, so that whatever a library does at its first use is
  // behind us: not all of it may be captured.
  bool has_run_ = false;
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_DEVICE_EXECUTOR_H_
