#include "worker/model/compiled_model.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/aligned_places.h"
#include "common/tensor/dtype.h"
#include "worker/layer/counter_random.h"
#include "worker/model/buffer_placement.h"
#include "worker/model/memory_planner.h"
#include "worker/model/plan_compiler.h"
#include "worker/model/plan_table.h"
#include "worker/model/program.h"

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
  return def;
}

absl::Status CheckOptions(const CompileOptions& options) {
  if (options.backend == nullptr) {
    return absl::InvalidArgumentError("compile a model: no backend is given");
  }
  const DataType dtype = options.backend->dtype();
  if (dtype == FLOAT32 || dtype == FLOAT64) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("compile a model: backend '", options.backend->name(),
                   "' computes in ", DataTypeName(dtype)));
}

absl::Status AwaitAll(absl::Span<const int> parameters, ParameterGate* gate) {
  if (gate == nullptr) return absl::OkStatus();
  for (const int parameter : parameters) {
    RETURN_IF_ERROR(gate->BeforeUse(parameter));
  }
  return absl::OkStatus();
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
  const Phase phase =
      options.mode == Mode::kTrain ? Phase::kTraining : Phase::kInference;
  ASSIGN_OR_RETURN(Program program,
                   LowerModel(graph, options.batch_size, phase));
  FuseActivations(&program);
  PlanOptions plan_options;
  plan_options.input_gradient =
      options.input_gradient && phase == Phase::kTraining;
  ASSIGN_OR_RETURN(
      ExecutionPlan plan,
      CompilePlan(program, graph.parameters(), plan_options, options.backend));
  return std::unique_ptr<CompiledModel>(
      new CompiledModel(graph, options, std::move(plan)));
}

CompiledModel::CompiledModel(const ModelGraph& graph,
                             const CompileOptions& options, ExecutionPlan plan)
    : dtype_(options.backend->dtype()),
      mode_(options.mode),
      batch_size_(options.batch_size),
      example_elements_(graph.input_shape().num_elements()),
      num_classes_(graph.num_classes()),
      plan_(std::move(plan)) {
  PlaceParameters(graph, options.parameters_of);
  BufferPlacement placement = PlaceBuffers(plan_);
  arena_ = AlignedBuffer(placement.arena_bytes);
  arena_offsets_ = std::move(placement.offsets);
  // A float32 training batch is always whole, and used where it lies.
  if (dtype_ == FLOAT64 || mode_ == Mode::kEvaluate) {
    examples_ = AlignedBuffer(batch_size_ * example_elements_ * SizeOf(dtype_));
  }
  BindOperands();
  FindFirstUses();
  FindFinalWrites();
  FindAverages();
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

void CompiledModel::PlaceParameters(const ModelGraph& graph,
                                    CompiledModel* parameters_of) {
  AlignedPlaces places;
  for (const ModelGraph::Parameter& parameter : graph.parameters()) {
    parameters_.push_back(MakeTensorDef(parameter));
    initializers_.push_back(parameter.initializer);
    sizes_.push_back(parameter.shape.num_elements());
    offsets_.push_back(
        places.Add(sizes_.back() * static_cast<int64_t>(SizeOf(dtype_))));
  }
  if (parameters_of == nullptr) values_ = AlignedBuffer(places.size_bytes());
  values_data_ =
      parameters_of == nullptr ? values_.data() : parameters_of->values_data_;
  for (const int64_t offset : offsets_) {
    read_from_.push_back(values_data_ + offset);
  }
  if (mode_ == Mode::kTrain) gradients_ = AlignedBuffer(places.size_bytes());
}

void CompiledModel::ReadParametersFrom(absl::Span<const float* const> values) {
  assert(values.empty() ||
         (values.size() == parameters_.size() && dtype_ == FLOAT32));
  for (size_t i = 0; i < read_from_.size(); ++i) {
    read_from_[i] = values.empty() ? values_data_ + offsets_[i]
                                   : reinterpret_cast<const char*>(values[i]);
  }
  BindParameters();
}

void* CompiledModel::BufferData(int buffer) const {
  const PlanBuffer& where = plan_.buffers[buffer];
  switch (where.space) {
    case BufferSpace::kParameter:
      // Who reads it changes nothing: Operands::Set.
      return const_cast<char*>(read_from_[where.index]);
    case BufferSpace::kGradient:
      return gradients_.data() + offsets_[where.index];
    case BufferSpace::kArena:
      return arena_.data() + arena_offsets_[buffer];
    case BufferSpace::kInput:
    case BufferSpace::kLabels:
      return nullptr;
  }
  return nullptr;
}

void CompiledModel::BindOperands() {
  operands_.resize(plan_.instructions.size());
  for (size_t i = 0; i < operands_.size(); ++i) {
    for (const BoundOperand& bound : plan_.instructions[i].operands) {
      operands_[i].Set(bound.operand, BufferData(bound.buffer), bound.index);
    }
  }
}

void CompiledModel::BindParameters() {
  for (size_t i = 0; i < operands_.size(); ++i) {
    for (const BoundOperand& bound : plan_.instructions[i].operands) {
      const PlanBuffer& buffer = plan_.buffers[bound.buffer];
      if (buffer.space != BufferSpace::kParameter) continue;
      const void* const values = read_from_[buffer.index];
      operands_[i].Set(bound.operand, values, bound.index);
    }
  }
}

// Reading, copying to another layout and the penalty alike.
void CompiledModel::FindFirstUses() {
  std::vector<bool> used(parameters_.size(), false);
  first_used_by_.resize(plan_.instructions.size());
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    for (const BoundOperand& bound : plan_.instructions[i].operands) {
      const PlanBuffer& buffer = plan_.buffers[bound.buffer];
      if (buffer.space != BufferSpace::kParameter || used[buffer.index]) {
        continue;
      }
      used[buffer.index] = true;
      first_used_by_[i].push_back(buffer.index);
    }
  }
}

// A gradient is final after the last instruction that touches its buffer: the
// sum over all uses, or the penalty that is added to it. It is told of when the
// parameter itself is not read any more, either.
void CompiledModel::FindFinalWrites() {
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  std::vector<size_t> last(parameters_.size(), kNone);
  std::vector<size_t> last_read(parameters_.size(), 0);
  bool has_loss = false;
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    for (const BoundOperand& bound : plan_.instructions[i].operands) {
      const PlanBuffer& buffer = plan_.buffers[bound.buffer];
      if (buffer.space == BufferSpace::kGradient) last[buffer.index] = i;
      if (buffer.space == BufferSpace::kParameter) last_read[buffer.index] = i;
      // The penalties add to it later.
      if (bound.buffer == plan_.loss_buffer && !has_loss) {
        loss_instruction_ = i;
        has_loss = true;
      }
    }
  }
  final_after_.resize(plan_.instructions.size());
  for (size_t parameter = 0; parameter < last.size(); ++parameter) {
    if (last[parameter] == kNone) continue;
    final_after_[std::max(last[parameter], last_read[parameter])].push_back(
        static_cast<int>(parameter));
  }
}

void CompiledModel::FindAverages() {
  for (const MovingAverage& average : plan_.moving_averages) {
    std::vector<int>& averaged = averaged_parameters_;
    if (std::find(averaged.begin(), averaged.end(), average.parameter) ==
        averaged.end()) {
      averaged.push_back(average.parameter);
    }
  }
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
    const Batch& batch, uint64_t step_seed, StepListener* listener,
    ParameterGate* gate) {
  if (mode_ != Mode::kTrain) {
    return absl::FailedPreconditionError(
        "step: the model was compiled for evaluation");
  }
  if (batch.rows != batch_size_) {
    return absl::InvalidArgumentError(
        absl::StrCat("step: the model was compiled for ", batch_size_,
                     " rows, the batch has ", batch.rows));
  }
  ASSIGN_OR_RETURN(const StepResult result,
                   Run(batch, step_seed, listener, gate));
  RETURN_IF_ERROR(AwaitAll(averaged_parameters_, gate));
  if (dtype_ == FLOAT64) {
    WriteMovingAverages<double>();
  } else {
    WriteMovingAverages<float>();
  }
  if (listener != nullptr) {
    for (const int parameter : averaged_parameters_) {
      listener->OnGradient(parameter);
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
  return Run(batch, /*step_seed=*/0, /*listener=*/nullptr,
             /*gate=*/nullptr);
}

absl::Status CompiledModel::CheckBatch(const Batch& batch) const {
  if (batch.rows < 1 || batch.rows > batch_size_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model takes 1 to ", batch_size_,
                     " rows, the batch has ", batch.rows));
  }
  const size_t needed = batch.rows * example_elements_ * sizeof(float);
  if (batch.examples.size_bytes() < needed ||
      batch.labels.size() < static_cast<size_t>(batch.rows)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a batch of ", batch.rows, " rows needs ", needed,
        " bytes of examples and a label a row; it has ",
        batch.examples.size_bytes(), " and ", batch.labels.size()));
  }
  return absl::OkStatus();
}

// Points the instructions that read the batch to its memory, or to a copy if
// it is in another type or shorter than the primitives read.
void CompiledModel::BindBatch(const Batch& batch) {
  const float* examples = batch.examples.as<float>();
  const int64_t elements = batch.rows * example_elements_;
  const void* input = examples;
  if (dtype_ == FLOAT64) {
    std::copy_n(examples, elements, examples_.as<double>());
    input = examples_.data();
  } else if (batch.rows < batch_size_) {
    std::copy_n(examples, elements, examples_.as<float>());
    input = examples_.data();
  }
  for (size_t i = 0; i < operands_.size(); ++i) {
    for (const BoundOperand& bound : plan_.instructions[i].operands) {
      const BufferSpace space = plan_.buffers[bound.buffer].space;
      if (space == BufferSpace::kInput) {
        operands_[i].Set(bound.operand, input, bound.index);
      } else if (space == BufferSpace::kLabels) {
        operands_[i].Set(bound.operand,
                         static_cast<const void*>(batch.labels.data()),
                         bound.index);
      }
    }
  }
}

double CompiledModel::loss() const {
  double loss = 0;
  std::memcpy(&loss, BufferData(plan_.loss_buffer), sizeof(loss));
  return loss;
}

absl::Status CompiledModel::TellListener(size_t instruction,
                                         StepListener* listener) const {
  if (listener == nullptr) return absl::OkStatus();
  if (instruction == loss_instruction_) {
    RETURN_IF_ERROR(listener->OnForward(loss()));
  }
  for (const int parameter : final_after_[instruction]) {
    listener->OnGradient(parameter);
  }
  return absl::OkStatus();
}

absl::Status CompiledModel::Execute(size_t index, uint64_t step_seed) {
  const Instruction& instruction = plan_.instructions[index];
  if (instruction.is_seeded) {
    operands_[index].seed = CounterRandom(step_seed, instruction.name).Bits(0);
  }
  const absl::Status status = instruction.primitive->Execute(operands_[index]);
  if (status.ok()) return status;
  return Annotate(status, absl::StrCat("layer '", instruction.name, "'"));
}

absl::StatusOr<CompiledModel::StepResult> CompiledModel::Run(
    const Batch& batch, uint64_t step_seed, StepListener* listener,
    ParameterGate* gate) {
  RETURN_IF_ERROR(CheckBatch(batch));
  BindBatch(batch);
  for (size_t i = 0; i < operands_.size(); ++i) {
    operands_[i].rows = batch.rows;
    RETURN_IF_ERROR(AwaitAll(first_used_by_[i], gate));
    RETURN_IF_ERROR(Execute(i, step_seed));
    RETURN_IF_ERROR(TellListener(i, listener));
  }
  StepResult result;
  result.loss = loss();
  std::memcpy(&result.correct, BufferData(plan_.correct_buffer),
              sizeof(result.correct));
  return result;
}

template <typename T>
void CompiledModel::WriteMovingAverages() {
  for (const MovingAverage& average : plan_.moving_averages) {
    const absl::Span<T> delta = SpanOf<T>(gradients_.data(), average.parameter);
    std::fill(delta.begin(), delta.end(), T{0});
  }
  for (const MovingAverage& average : plan_.moving_averages) {
    const T* batch = static_cast<const T*>(BufferData(average.batch_buffer));
    const T* moving = reinterpret_cast<const T*>(read_from_[average.parameter]);
    const absl::Span<T> delta = SpanOf<T>(gradients_.data(), average.parameter);
    const T scale = static_cast<T>(average.scale);
    const T rate = static_cast<T>(1 - average.momentum);
    for (size_t i = 0; i < delta.size(); ++i) {
      delta[i] += rate * (scale * batch[i] - moving[i]);
    }
  }
}

std::string CompiledModel::DescribePlan(absl::string_view device) const {
  return PlanTable(plan_, device);
}

}  // namespace muster
