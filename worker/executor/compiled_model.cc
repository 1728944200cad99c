#include "worker/executor/compiled_model.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <map>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "common/tensor/aligned_places.h"
#include "common/tensor/dtype.h"
#include "worker/backend/check_labels.h"
#include "worker/executor/device_executor.h"
#include "worker/executor/host_executor.h"
#include "worker/executor/moving_averages.h"
#include "worker/executor/pipeline_costs.h"
#include "worker/model/memory_bridges.h"
#include "worker/model/plan_compiler.h"
#include "worker/model/plan_table.h"
#include "worker/model/program.h"
#include "worker/model/split_check.h"
#include "worker/model/split_layers.h"

namespace muster {
namespace {

using Mode = CompileOptions::Mode;

TensorDef MakeTensorDef(const ModelGraph::Parameter& parameter) {
  TensorDef def;
  def.set_name(parameter.name);
  for (const int64_t dim : parameter.shape.dims()) def.add_shape(dim);
  // On the wire and in files; a float64 model is for tests.
  def.set_dtype(FLOAT32);
  def.set_kind(parameter.kind);
  def.set_decay(static_cast<float>(parameter.decay));
  return def;
}

std::vector<Backend*> BackendsOf(const CompileOptions& options) {
  std::vector<Backend*> backends = {options.backend};
  backends.insert(backends.end(), options.more_backends.begin(),
                  options.more_backends.end());
  return backends;
}

absl::Status CheckDevices(const CompileOptions& options) {
  if (options.more_backends.empty()) return absl::OkStatus();
  for (Backend* const backend : BackendsOf(options)) {
    if (backend->dtype() != options.backend->dtype()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "compile a model over several devices: all must compute in ",
          DataTypeName(options.backend->dtype()), ", '", backend->name(),
          "' computes in ", DataTypeName(backend->dtype())));
    }
  }
  return absl::OkStatus();
}

absl::Status AssignDevices(const CompileOptions& options, Program* program) {
  if (options.device_of == nullptr) return absl::OkStatus();
  const int count = static_cast<int>(options.more_backends.size()) + 1;
  for (ProgramOp& op : program->ops) {
    op.device = options.device_of(
        op.part_of.empty() ? op.name : op.part_of,
        op.parts == 1 ? CompileOptions::kWholeLayer : op.part);
    if (op.device >= 0 && op.device < count) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("compile layer '", op.name, "': its device is ", op.device,
                     ", the model has ", count));
  }
  return absl::OkStatus();
}

// How many of the layer's equal parts are computed together: neighbours on one
// device, unless all are.
std::vector<int> PartRuns(const LayerSpec& layer,
                          const CompileOptions& options) {
  const std::vector<int> each(layer.split().parts(), 1);
  if (options.device_of == nullptr) return each;
  std::vector<int> runs;
  int last = -1;
  for (int part = 0; part < layer.split().parts(); ++part) {
    const int device = options.device_of(layer.name(), part);
    if (runs.empty() || device != last) runs.push_back(0);
    ++runs.back();
    last = device;
  }
  return runs.size() == 1 ? each : runs;
}

absl::Status SplitProgram(const ModelSpec& spec, const ModelGraph& graph,
                          const CompileOptions& options, Program* program) {
  RETURN_IF_ERROR(CheckSplits(spec, graph));
  std::map<std::string, LayerSplit> splits;
  for (const LayerSpec& layer : spec.layer()) {
    if (!layer.has_split()) continue;
    LayerSplit& split = splits[layer.name()];
    split.by = layer.split().by();
    if (split.by == OUTPUTS) split.runs = PartRuns(layer, options);
  }
  SplitLayers(splits, program);
  return absl::OkStatus();
}

// For so many rows, on the devices of the options.
absl::StatusOr<Program> MakeProgram(const ModelSpec& spec,
                                    const ModelGraph& graph,
                                    const CompileOptions& options,
                                    int64_t batch_size) {
  const Phase phase =
      options.mode == Mode::kTrain ? Phase::kTraining : Phase::kInference;
  ASSIGN_OR_RETURN(Program program, LowerModel(graph, batch_size, phase));
  if (options.weighted) WeighRows(&program);
  FuseActivations(&program);
  RETURN_IF_ERROR(SplitProgram(spec, graph, options, &program));
  RETURN_IF_ERROR(AssignDevices(options, &program));
  return program;
}

// As many as there are devices.
std::vector<std::string> DeviceNames(const CompileOptions& options) {
  std::vector<std::string> names = options.device_names;
  while (names.size() <= options.more_backends.size()) {
    names.push_back(absl::StrCat("device ", names.size()));
  }
  return names;
}

// A whole batch if the spec has no pipeline, or the model only evaluates; else
// `micro_batch` becomes the program of each.
absl::StatusOr<Pipeline> MakePipeline(const ModelSpec& spec,
                                      const ModelGraph& graph,
                                      const CompileOptions& options,
                                      Program* micro_batch) {
  Pipeline pipeline;
  const int count = spec.pipeline().micro_batches();
  if (count == 0) return pipeline;
  RETURN_IF_ERROR(CheckMicroBatches(count));
  if (options.mode == Mode::kEvaluate) return pipeline;
  RETURN_IF_ERROR(CheckDivides(count, options.batch_size));
  ASSIGN_OR_RETURN(*micro_batch, MakeProgram(spec, graph, options,
                                             options.batch_size / count));
  return FindPipeline(*micro_batch, count, DeviceNames(options));
}

absl::Status CheckOptions(const CompileOptions& options) {
  if (options.backend == nullptr) {
    return absl::InvalidArgumentError("compile a model: no backend is given");
  }
  const DataType dtype = options.backend->dtype();
  if (dtype == FLOAT32 || dtype == FLOAT64) return CheckDevices(options);
  return absl::UnimplementedError(
      absl::StrCat("compile a model: backend '", options.backend->name(),
                   "' computes in ", DataTypeName(dtype)));
}

// Before anything is made of the model: a backend may not take such sizes.
absl::Status CheckParameters(const ModelGraph& graph,
                             const CompileOptions& options) {
  int64_t elements = 0;
  for (const ModelGraph::Parameter& parameter : graph.parameters()) {
    elements += parameter.shape.num_elements();
  }
  const bool trains = options.mode == Mode::kTrain;
  const int copies =
      (options.parameters_of == nullptr ? 1 : 0) + (trains ? 1 : 0);
  return CheckMemory(
      absl::StrCat("the model, with ", elements, " parameter values",
                   trains ? " and their gradients," : ","),
      elements * copies *
          static_cast<int64_t>(SizeOf(options.backend->dtype())),
      options.memory_limit_bytes);
}

std::vector<DeviceStreams*> StreamsOf(const CompileOptions& options) {
  std::vector<DeviceStreams*> streams;
  for (Backend* const backend : BackendsOf(options)) {
    streams.push_back(backend->streams());
  }
  return streams;
}

absl::StatusOr<std::unique_ptr<PlanExecutor>> CreateExecutor(
    const ExecutedModel& model, const CompileOptions& options) {
  DeviceStreams* const streams = options.backend->streams();
  if (streams == nullptr || model.plan->has_lanes()) {
    HostExecutor::MemoryLimits limits;
    limits.total_bytes = options.memory_limit_bytes;
    limits.taken_bytes = static_cast<int64_t>(
        model.parameters->values.size() + model.parameters->gradients.size());
    limits.device_bytes = options.device_memory_limit_bytes;
    return HostExecutor::Create(model, limits);
  }
  DeviceExecutor::Options device;
  device.use_graphs = options.use_graphs;
  device.reporter = options.reporter;
  device.mean = options.mean;
  device.mean_member = options.mean_member;
  device.keeps_mean = options.keeps_mean;
  return DeviceExecutor::Create(model, streams, device);
}

// How many labels of this type the batch has room for.
template <typename T>
absl::StatusOr<size_t> NumLabels(const Batch& batch) {
  ASSIGN_OR_RETURN(const absl::Span<const T> labels,
                   batch.Get<T>(kBatchLabels));
  return labels.size();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompiledModel>> CompiledModel::Create(
    const ModelSpec& spec, const CompileOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(const ModelGraph graph, ModelGraph::Create(spec));
  if (options.parameters_of != nullptr &&
      !options.parameters_of->HasParameters(graph, options.backend->dtype())) {
    return absl::InvalidArgumentError(
        absl::StrCat("compile model '", spec.name(),
                     "' with the parameters of another: the other was compiled "
                     "from another spec or in another type"));
  }
  RETURN_IF_ERROR(Annotate(CheckParameters(graph, options),
                           absl::StrCat("compile model '", spec.name(), "'")));
  ASSIGN_OR_RETURN(const Program program,
                   MakeProgram(spec, graph, options, options.batch_size));
  PlanOptions plan_options;
  plan_options.input_gradient =
      options.input_gradient && options.mode == Mode::kTrain;
  Program micro_batch;
  ASSIGN_OR_RETURN(Pipeline pipeline,
                   MakePipeline(spec, graph, options, &micro_batch));
  if (pipeline.micro_batches > 1) plan_options.micro_batch = &micro_batch;
  ASSIGN_OR_RETURN(ExecutionPlan plan,
                   CompilePlan(program, graph.parameters(), plan_options,
                               BackendsOf(options)));
  const std::vector<DeviceStreams*> streams = StreamsOf(options);
  if (plan.has_lanes()) {
    BridgeMemories({streams.begin(), streams.end()}, &plan);
  }
  auto model = absl::WrapUnique(
      new CompiledModel(graph, options, std::move(plan), std::move(pipeline)));
  ExecutedModel executed = model->AsExecuted();
  executed.streams = streams;
  executed.reporter = options.reporter;
  executed.stall_period = options.stall_period;
  ASSIGN_OR_RETURN(model->executor_, CreateExecutor(executed, options));
  return model;
}

CompiledModel::CompiledModel(const ModelGraph& graph,
                             const CompileOptions& options, ExecutionPlan plan,
                             Pipeline pipeline)
    : dtype_(options.backend->dtype()),
      mode_(options.mode),
      batch_size_(options.batch_size),
      example_elements_(graph.input_shape().num_elements()),
      num_outputs_(graph.num_outputs()),
      loss_(graph.loss()),
      device_names_(DeviceNames(options)),
      plan_(std::move(plan)),
      schedule_(ScheduleStep(plan_, graph.parameters().size())),
      pipeline_(std::move(pipeline)) {
  PlaceParameters(graph, options.parameters_of);
}

ExecutedModel CompiledModel::AsExecuted() const {
  ExecutedModel model;
  model.plan = &plan_;
  model.schedule = &schedule_;
  model.parameters = &memory_;
  model.dtype = dtype_;
  model.batch_size = batch_size_;
  model.example_elements = example_elements_;
  model.num_outputs = num_outputs_;
  model.is_training = mode_ == Mode::kTrain;
  model.device_names = device_names_;
  return model;
}

bool CompiledModel::HasParameters(const ModelGraph& graph,
                                  DataType dtype) const {
  return dtype_ == dtype &&
         std::equal(parameters_.begin(), parameters_.end(),
                    graph.parameters().begin(), graph.parameters().end(),
                    [](const TensorDef& own, const auto& other) {
                      const TensorDef def = MakeTensorDef(other);
                      return own.name() == def.name() &&
                             own.kind() == def.kind() &&
                             std::equal(own.shape().begin(), own.shape().end(),
                                        def.shape().begin(), def.shape().end());
                    });
}

std::pair<size_t, size_t> CompiledModel::SetOffsets() {
  AlignedPlaces places;
  memory_.offsets.resize(parameters_.size());
  const auto place_those = [&](bool frozen) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if ((parameters_[i].kind() == FROZEN) != frozen) continue;
      memory_.offsets[i] = places.Add(memory_.sizes_bytes[i]);
    }
    return static_cast<size_t>(places.size_bytes());
  };
  const size_t gradients = place_those(/*frozen=*/false);
  return {gradients, place_those(/*frozen=*/true)};
}

void CompiledModel::PlaceParameters(const ModelGraph& graph,
                                    CompiledModel* parameters_of) {
  for (const ModelGraph::Parameter& parameter : graph.parameters()) {
    parameters_.push_back(MakeTensorDef(parameter));
    initializers_.push_back(parameter.initializer);
    sizes_.push_back(parameter.shape.num_elements());
    memory_.sizes_bytes.push_back(sizes_.back() *
                                  static_cast<int64_t>(SizeOf(dtype_)));
  }
  const auto [gradient_bytes, bytes] = SetOffsets();
  if (parameters_of == nullptr) {
    values_ = AlignedBuffer::OfPages(bytes);
    memory_.values = {values_.data(), bytes};
  } else {
    memory_.values = parameters_of->memory_.values;
  }
  if (mode_ == Mode::kTrain) {
    gradients_ = AlignedBuffer::OfPages(gradient_bytes);
    memory_.gradients = {gradients_.data(), gradient_bytes};
  }
  memory_.read_from.resize(parameters_.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    memory_.read_from[i] = memory_.value(static_cast<int>(i));
  }
}

void CompiledModel::ReadParametersFrom(absl::Span<const float* const> values) {
  assert(values.empty() ||
         (values.size() == parameters_.size() && dtype_ == FLOAT32));
  for (size_t i = 0; i < parameters_.size(); ++i) {
    memory_.read_from[i] = values.empty()
                               ? memory_.value(static_cast<int>(i))
                               : reinterpret_cast<const char*>(values[i]);
  }
  executor_->OnParametersMoved();
}

absl::Status CompiledModel::InitializeParameters(uint64_t seed) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const TensorDef& def = parameters_[i];
    const std::vector<int64_t> dims(def.shape().begin(), def.shape().end());
    ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    const int index = static_cast<int>(i);
    if (dtype_ == FLOAT64) {
      FillInitialValues(initializers_[i], seed, def.name(), shape,
                        parameter_as<double>(index));
    } else {
      FillInitialValues(initializers_[i], seed, def.name(), shape,
                        parameter_as<float>(index));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CompiledModel::StepResult> CompiledModel::Step(
    const Batch& batch, uint64_t step_seed, const StepOptions& options) {
  if (mode_ != Mode::kTrain) {
    return absl::FailedPreconditionError(
        "step: the model was compiled for evaluation");
  }
  if (batch.rows != batch_size_) {
    const absl::Status status = absl::InvalidArgumentError(
        absl::StrCat("step: the model was compiled for ", batch_size_,
                     " rows, the batch has ", batch.rows));
    executor_->Skip(status);
    return status;
  }
  SeededBatch next = options.next;
  // A fault of the next batch is its own step's to tell.
  if (next.batch != nullptr && !CheckBatch(*next.batch).ok()) next = {};
  ASSIGN_OR_RETURN(const StepResult result,
                   Run({batch, step_seed, options.listener, options.gate, next,
                        options.trace}));
  // No step reads moving averages, but what answers the push may write to them.
  RETURN_IF_ERROR(AwaitParameters(schedule_.averaged_parameters, options.gate));
  WriteMovingAverages(plan_.moving_averages, *executor_, dtype_, memory_);
  if (options.listener != nullptr) {
    for (const int parameter : schedule_.averaged_parameters) {
      options.listener->OnGradient(parameter);
    }
  }
  return result;
}

absl::StatusOr<CompiledModel::StepResult> CompiledModel::Evaluate(
    const Batch& batch) {
  if (mode_ != Mode::kEvaluate) {
    return absl::FailedPreconditionError(
        "evaluate: the model was compiled for training");
  }
  return Run({batch});
}

absl::Status CompiledModel::CheckBatch(const Batch& batch) const {
  if (batch.rows < 1 || batch.rows > batch_size_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model takes 1 to ", batch_size_,
                     " rows, the batch has ", batch.rows));
  }
  ASSIGN_OR_RETURN(const absl::Span<const float> input,
                   batch.Get<float>(kBatchInput));
  ASSIGN_OR_RETURN(const size_t labels, plan_.labels.dtype == INT32
                                            ? NumLabels<int32_t>(batch)
                                            : NumLabels<float>(batch));
  if (is_weighted()) RETURN_IF_ERROR(batch.Get<float>(kBatchWeights).status());
  const size_t needed = batch.rows * example_elements_;
  const size_t needed_labels =
      batch.rows * (plan_.labels.shape.num_elements() / batch_size_);
  if (input.size() < needed || labels < needed_labels) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", batch.rows, " rows needs ", needed,
                     " values of input and ", needed_labels,
                     " of labels; it has ", input.size(), " and ", labels));
  }
  if (loss_.prediction != Prediction::kSigmoid) return absl::OkStatus();
  return CheckProbabilities(batch.targets().first(batch.rows * num_outputs_),
                            num_outputs_);
}

absl::StatusOr<CompiledModel::StepResult> CompiledModel::Run(
    const PlanExecutor::Step& step) {
  const absl::Status fits = CheckBatch(step.batch);
  if (!fits.ok()) {
    executor_->Skip(fits);
    return fits;
  }
  RETURN_IF_ERROR(executor_->Run(step));
  rows_ = step.batch.rows;
  StepResult result;
  std::memcpy(&result.loss, executor_->Result(plan_.loss_buffer),
              sizeof(result.loss));
  if (counts_correct()) {
    std::memcpy(&result.correct, executor_->Result(plan_.correct_buffer),
                sizeof(result.correct));
  }
  return result;
}

absl::StatusOr<std::string> CompiledModel::MeasurePipeline(const Batch& batch) {
  constexpr int kSteps = 5;
  RETURN_IF_ERROR(CheckBatch(batch));
  // The first step is slower than others.
  ASSIGN_OR_RETURN(std::vector<absl::Duration> least,
                   executor_->Measure({batch}));
  for (int step = 0; step < kSteps; ++step) {
    ASSIGN_OR_RETURN(const std::vector<absl::Duration> times,
                     executor_->Measure({batch}));
    for (size_t i = 0; i < times.size(); ++i) {
      least[i] = std::min(least[i], times[i]);
    }
  }
  return PipelineTable(pipeline_,
                       FindPipelineCosts(plan_, schedule_.loss_instruction,
                                         least, memory_.sizes_bytes),
                       device_names_);
}

std::string CompiledModel::DescribePlan(
    absl::Span<const std::string> devices) const {
  return PlanTable(plan_, devices);
}

}  // namespace muster
