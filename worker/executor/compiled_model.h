#ifndef WORKER_EXECUTOR_COMPILED_MODEL_H_
#define WORKER_EXECUTOR_COMPILED_MODEL_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/reporter.h"
#include "common/tensor/aligned_buffer.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"
#include "worker/backend/backend.h"
#include "worker/backend/device_mean.h"
#include "worker/backend/device_rule.h"
#include "worker/executor/device_trace.h"
#include "worker/executor/parameter_gate.h"
#include "worker/executor/plan_executor.h"
#include "worker/executor/step_listener.h"
#include "worker/executor/step_schedule.h"
#include "worker/input/batch.h"
#include "worker/model/execution_plan.h"
#include "worker/model/model_graph.h"
#include "worker/model/pipeline_stages.h"

namespace muster {

class CompiledModel;

struct CompileOptions {
  enum class Mode {
    kTrain,     // Step
    kEvaluate,  // Evaluate: no gradients, no dropout, moving averages
  };

  // Not owned; outlives the model. Its dtype is the model's.
  Backend* backend = nullptr;
  // Rows of a step; of an evaluation the most rows.
  int64_t batch_size = 0;
  Mode mode = Mode::kTrain;
  // Training only: Step also makes input_gradient().
  bool input_gradient = false;
  // The loss weighs each row: batches have kBatchWeights, and room in it for as
  // many rows as in the labels.
  bool weighted = false;
  // A model of the same spec and dtype whose parameters this one reads instead
  // of having its own: several towers, one copy. Not owned; outlives the model.
  // While one of them runs, nobody may write them.
  CompiledModel* parameters_of = nullptr;
  // On a backend with streams, one of several towers: its gradients become the
  // mean over all members before they come to the host, which is only where
  // `keeps_mean`; elsewhere gradient() is of no meaning. Not owned; outlives
  // the model. Then all parameters are awaited before a step begins to compute.
  // REQUIRES: the model is not divided.
  DeviceMean* mean = nullptr;
  int mean_member = 0;
  bool keeps_mean = true;
  // On a backend with streams: the second and the third training step are
  // captured, each in a few graphs, which later ones launch in turns.
  bool use_graphs = true;
  // The most of the host's memory for all that the model holds.
  int64_t memory_limit_bytes = std::numeric_limits<int64_t>::max();
  // Hears, in one line, why steps are not captured, and which device others
  // wait for.
  Reporter reporter;
  // Devices 1, 2, ...; `backend` is device 0. Not owned; outlive the model. All
  // compute in one dtype.
  std::vector<Backend*> more_backends = {};
  // The device of the layer with this name, or of its `part` (kWholeLayer:
  // where parts are joined); null: 0 for every layer. A ReLU that is merged
  // into the operation beside it goes where that is.
  static constexpr int kWholeLayer = -1;
  std::function<int(absl::string_view layer, int part)> device_of;
  // The names of the devices, for messages; by default their numbers.
  std::vector<std::string> device_names = {};
  // The most memory of each device that computes in the host's.
  int64_t device_memory_limit_bytes = std::numeric_limits<int64_t>::max();
  // `reporter` hears of a device that does not go on for so long.
  absl::Duration stall_period = absl::Seconds(10);
};

// Who has to do with a training step; nobody need.
struct StepOptions {
  // Hears of the step meanwhile.
  StepListener* listener = nullptr;
  // Is asked for each parameter before the first use of it, once, in the order
  // of the forward pass (moving averages come last).
  ParameterGate* gate = nullptr;
  // The batch that the next step will probably be with, as far as it is known:
  // a device gets it while it computes this one. It may change afterwards, with
  // a new id.
  SeededBatch next = {};
  // Gets what a backend with streams does in the step.
  DeviceTrace* trace = nullptr;
};

// A model made ready for its backends, batch size and mode: primitives, and all
// memory that a step needs. One thread at a time.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<CompiledModel> model,
//                    CompiledModel::Create(spec, {backend, 128}));
//   RETURN_IF_ERROR(model->InitializeParameters(seed));
//   ASSIGN_OR_RETURN(CompiledModel::StepResult result,
//                    model->Step(batch, step));
//   // model->gradient(i) is the gradient of model->parameters()[i].
//
// Parameters and gradients are canonical: row-major, convolution weights
// [O, I, KH, KW], dense weights [O, I]; and in the host's memory, also where
// the backend computes in another.
class CompiledModel {
 public:
  struct StepResult {
    // The loss, a mean over the rows, plus L2 penalties.
    double loss = 0;
    // Rows whose outputs say what their labels do; 0 unless counts_correct().
    int64_t correct = 0;
  };

  // Errors: InvalidArgument (see ModelGraph::Create; batch size; to evaluate, a
  // loss that reads the model's input; those of CheckSplits, FindStages and
  // CheckMicroBatches; parameters_of has other parameters; a layer's device is
  // not there; more memory than the limit, before any is taken), and the
  // backend's.
  static absl::StatusOr<std::unique_ptr<CompiledModel>> Create(
      const ModelSpec& spec, const CompileOptions& options);

  CompiledModel(const CompiledModel&) = delete;
  CompiledModel& operator=(const CompiledModel&) = delete;

  // In creation order, of all kinds.
  absl::Span<const TensorDef> parameters() const { return parameters_; }

  // Writes every parameter's first values: a function of (seed, name), the
  // same on every machine and backend.
  absl::Status InitializeParameters(uint64_t seed);

  // The values that the next step uses, unless it reads others'. REQUIRES: the
  // model computes in T.
  template <typename T>
  absl::Span<T> parameter_as(int i) {
    return SpanOf<T>(memory_.value(i), i);
  }
  absl::Span<float> parameter(int i) { return parameter_as<float>(i); }

  // From now on steps read parameter i from values[i], which may change at any
  // time, and goes on being there; from parameter(i) again if `values` is
  // empty. Allocates nothing. REQUIRES: aligned to AlignedBuffer::kAlignment;
  // one for each parameter; the model computes in float32.
  void ReadParametersFrom(absl::Span<const float* const> values);
  // Where steps read parameter i now. REQUIRES: the model computes in float32.
  absl::Span<const float> read_parameter(int i) const {
    return {reinterpret_cast<const float*>(memory_.read_from[i]),
            static_cast<size_t>(sizes_[i])};
  }

  // On a backend with streams, before the first Step: from now on steps read
  // the parameters where the result holds and updates them, by `rule`
  // (DeviceUpdate), and it alone brings parameter(i) and gradient(i) to the
  // host. The result is the model's. REQUIRES: no mean and no
  // ReadParametersFrom; mode kTrain. Errors: Unimplemented without a device;
  // those of its streams.
  absl::StatusOr<DeviceUpdate*> UpdateOnDevice(std::unique_ptr<DeviceRule> rule,
                                               int num_slots) {
    return executor_->UpdateOnDevice(std::move(rule), num_slots);
  }

  // The last Step's gradient of a trainable parameter, or what is to be added
  // to a state parameter that has decayed (TensorDef.decay); zero before. Empty
  // for a frozen one. REQUIRES: mode kTrain, T as above.
  template <typename T>
  absl::Span<const T> gradient_as(int i) const {
    if (parameters_[i].kind() == FROZEN) return {};
    return SpanOf<T>(memory_.gradient(i), i);
  }
  absl::Span<const float> gradient(int i) const {
    return gradient_as<float>(i);
  }
  // The same, to change it before it is pushed.
  absl::Span<float> mutable_gradient(int i) {
    if (parameters_[i].kind() == FROZEN) return {};
    return SpanOf<float>(memory_.gradient(i), i);
  }

  // [batch, input...] of the last Step. REQUIRES: options.input_gradient.
  template <typename T>
  absl::Span<const T> input_gradient_as() const {
    return {
        static_cast<const T*>(executor_->Result(plan_.input_gradient_buffer)),
        static_cast<size_t>(batch_size_ * example_elements_)};
  }

  // Forward and backward; changes no parameter. `step_seed` chooses what
  // dropout drops. Without a trace it allocates nothing after the first call,
  // with graphs after the third. Errors: InvalidArgument if the batch has not
  // batch_size rows, holds less memory than it says, or has a label out of
  // range; FailedPrecondition in mode kEvaluate; those of the listener, the
  // gate and the backend's streams.
  absl::StatusOr<StepResult> Step(const Batch& batch, uint64_t step_seed,
                                  const StepOptions& options = {});

  // Forward only. batch.rows may be less than the batch size. Errors: as Step,
  // FailedPrecondition in mode kTrain.
  absl::StatusOr<StepResult> Evaluate(const Batch& batch);

  // [rows, num_outputs] of the last Evaluate: what the loss has read, before
  // any softmax or sigmoid. REQUIRES: mode kEvaluate; the model computes in
  // float32.
  absl::Span<const float> outputs() const {
    return {static_cast<const float*>(executor_->Result(plan_.outputs_buffer)),
            static_cast<size_t>(rows_ * num_outputs_)};
  }

  // Computes some steps, of which nobody hears, one instruction after another:
  // PipelineTable of the least time that each has taken. REQUIRES:
  // has_pipeline. Errors: those of Step.
  absl::StatusOr<std::string> MeasurePipeline(const Batch& batch);
  bool has_pipeline() const { return pipeline_.micro_batches > 1; }
  // Whether it is computed by several devices, or in parts by one.
  bool is_divided() const { return plan_.has_lanes(); }
  // DescribePipeline. REQUIRES: has_pipeline.
  const std::string& pipeline_title() const { return pipeline_.title; }

  // PlanTable of this model; `devices` are the names of its backends.
  std::string DescribePlan(absl::Span<const std::string> devices) const;

  int64_t batch_size() const { return batch_size_; }
  int64_t num_outputs() const { return num_outputs_; }
  // CompileOptions::weighted.
  bool is_weighted() const { return plan_.weights.size_bytes > 0; }
  // The loss's labels, metrics and predictions.
  const LossType& loss() const { return loss_; }
  // Whether the loss has a notion of a correct row.
  bool counts_correct() const { return plan_.correct_buffer >= 0; }
  // Memory for activations, their gradients and workspaces.
  int64_t arena_bytes() const { return executor_->arena_bytes(); }
  // The host's memory of all that.
  int64_t memory_bytes() const {
    return static_cast<int64_t>(values_.size_bytes() +
                                gradients_.size_bytes()) +
           executor_->host_bytes();
  }

 private:
  CompiledModel(const ModelGraph& graph, const CompileOptions& options,
                ExecutionPlan plan, Pipeline pipeline);

  void PlaceParameters(const ModelGraph& graph, CompiledModel* parameters_of);
  // Sets where each lies; returns the bytes of those that have a gradient,
  // which come first, and of all.
  std::pair<size_t, size_t> SetOffsets();
  bool HasParameters(const ModelGraph& graph, DataType dtype) const;
  ExecutedModel AsExecuted() const;
  absl::Status CheckBatch(const Batch& batch) const;
  absl::StatusOr<StepResult> Run(const PlanExecutor::Step& step);
  template <typename T>
  absl::Span<T> SpanOf(char* first, int i) const;

  const DataType dtype_;
  const CompileOptions::Mode mode_;
  const int64_t batch_size_;
  const int64_t example_elements_;
  const int64_t num_outputs_;
  const LossType loss_;
  const std::vector<std::string> device_names_;
  const ExecutionPlan plan_;
  const StepSchedule schedule_;
  std::vector<TensorDef> parameters_;
  std::vector<Initializer> initializers_;
  // Elements of each parameter.
  std::vector<int64_t> sizes_;

  // One with a single micro-batch if the spec has none.
  const Pipeline pipeline_;

  // Those of the last batch.
  int64_t rows_ = 0;

  // Empty if they are another model's.
  AlignedBuffer values_;
  AlignedBuffer gradients_;
  // Where they lie, with the other model's values.
  ParameterPlaces memory_;

  // Last: it refers to all else.
  std::unique_ptr<PlanExecutor> executor_;
};

template <typename T>
absl::Span<T> CompiledModel::SpanOf(char* first, int i) const {
  return {reinterpret_cast<T*>(first), static_cast<size_t>(sizes_[i])};
}

}  // namespace muster

#endif  // WORKER_EXECUTOR_COMPILED_MODEL_H_
