#include "worker/model/plan_compiler.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/model/plan_builder.h"
#include "worker/model/primitive_factory.h"

namespace muster {
namespace {

using Reads = PlanBuilder::Reads;
using Written = PlanBuilder::Written;

class PlanCompiler {
 public:
  PlanCompiler(const Program& program,
               absl::Span<const ModelGraph::Parameter> parameters,
               const PlanOptions& options, absl::Span<Backend* const> backends)
      : program_(program),
        parameters_(parameters),
        options_(options),
        is_training_(program.phase == Phase::kTraining),
        builder_(backends),
        values_(program.values.size()),
        ops_(program.ops.size()),
        parameter_states_(parameters.size()) {}

  absl::StatusOr<ExecutionPlan> Run() {
    AddExternalTensors();
    FindNeeds();
    for (size_t i = 0; i < program_.ops.size(); ++i) {
      RETURN_IF_ERROR(Annotate(AddForward(program_.ops[i], &ops_[i]),
                               Title(program_.ops[i])));
    }
    if (is_training_) {
      for (size_t i = program_.ops.size(); i-- > 0;) {
        RETURN_IF_ERROR(Annotate(AddBackward(program_.ops[i], ops_[i]),
                                 Title(program_.ops[i])));
      }
      RETURN_IF_ERROR(KeepInputGradient());
    } else {
      for (size_t i = 0; i < parameters_.size(); ++i) {
        RETURN_IF_ERROR(AddPenalty(static_cast<int>(i), /*gradient=*/-1));
      }
    }
    return std::move(builder_.plan());
  }

 private:
  struct ValueState {
    PlanTensor tensor;
    bool needs_gradient = false;
    // The gradient of each reader so far.
    std::vector<PlanTensor> gradients;
  };
  struct OpState {
    // Those that it reads: whole ones where they lie, or copies of parts.
    std::vector<PlanTensor> parameters;
    std::vector<MemoryLayout> src_layouts;
    std::vector<Written> written;
  };
  struct ParameterState {
    PlanTensor tensor;
    // Operations whose gradients are still to come.
    int uses_left = 0;
    std::vector<PlanTensor> gradients;
  };

  static std::string Title(const ProgramOp& op) {
    return absl::StrCat("compile layer '", op.name, "'");
  }

  // Each lies on the device of the first operation that reads it.
  void AddExternalTensors() {
    int input_device = 0;
    std::vector<int> devices(parameters_.size(), 0);
    for (size_t i = program_.ops.size(); i-- > 0;) {
      const ProgramOp& op = program_.ops[i];
      if (std::count(op.srcs.begin(), op.srcs.end(), 0) > 0) {
        input_device = op.device;
      }
      for (const int parameter : op.parameters) devices[parameter] = op.device;
    }
    builder_.UseDevice(input_device);
    values_[0].tensor =
        builder_.ExternalTensor(BufferSpace::kInput, 0, program_.values[0]);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      builder_.UseDevice(devices[i]);
      parameter_states_[i].tensor = builder_.ExternalTensor(
          BufferSpace::kParameter, static_cast<int>(i), parameters_[i].shape);
    }
  }

  bool IsTrained(int parameter) const {
    return parameters_[parameter].kind == TRAINABLE;
  }
  bool TrainsAny(const ProgramOp& op) const {
    return std::any_of(op.parameters.begin(), op.parameters.end(),
                       [this](int parameter) { return IsTrained(parameter); });
  }

  // A value needs a gradient if a parameter that is trained, or an input of
  // which the gradient was asked for, lies behind it.
  void FindNeeds() {
    values_[0].needs_gradient = options_.input_gradient;
    for (const ProgramOp& op : program_.ops) {
      for (const int parameter : op.parameters) {
        ++parameter_states_[parameter].uses_left;
      }
      if (op.dst < 0) continue;
      bool needs = TrainsAny(op);
      for (const int src : op.srcs) needs |= values_[src].needs_gradient;
      values_[op.dst].needs_gradient = needs;
    }
  }

  // The sources, on the operation's device.
  absl::StatusOr<std::vector<PlanTensor>> SrcTensors(const ProgramOp& op) {
    std::vector<PlanTensor> tensors;
    for (const int src : op.srcs) {
      ASSIGN_OR_RETURN(const PlanTensor tensor,
                       builder_.OnDevice(values_[src].tensor));
      tensors.push_back(tensor);
    }
    return tensors;
  }

  // Whether it is a batch norm that makes moving averages; else it reads them.
  static bool MovesAverages(const ProgramOp& op) {
    const auto* step = std::get_if<BatchNormStep>(&op.desc);
    return step != nullptr && step->desc.phase == Phase::kTraining;
  }

  // A part has copies: its place in the parameter is not aligned, and another
  // device may have it.
  std::vector<PlanTensor> ReadParameters(const ProgramOp& op) {
    std::vector<PlanTensor> tensors;
    for (const int parameter : op.parameters) {
      tensors.push_back(parameter_states_[parameter].tensor);
      if (op.parts == 1) continue;
      const PlanTensor part = builder_.ExternalPart(
          BufferSpace::kParameter, parameter, parameters_[parameter].shape,
          op.part, op.parts);
      tensors.back() = builder_.NewTensor(part.layout);
      builder_.EmitTransfer(part, tensors.back());
    }
    return tensors;
  }

  // The parameters of an operation that forward and backward may read.
  static std::vector<Reads> ParameterReads(const ProgramOp& op,
                                           const OpState& state) {
    static constexpr Operand kRoles[] = {Operand::kWeights, Operand::kBias,
                                         Operand::kMean, Operand::kVariance};
    const size_t count = MovesAverages(op)
                             ? std::min<size_t>(op.parameters.size(), 2)
                             : op.parameters.size();
    std::vector<Reads> reads;
    for (size_t i = 0; i < count; ++i) {
      reads.push_back({kRoles[i], {state.parameters[i]}});
    }
    return reads;
  }

  absl::Status AddForward(const ProgramOp& op, OpState* state) {
    builder_.UseDevice(op.device);
    if (const auto* reshape = std::get_if<ReshapeDesc>(&op.desc)) {
      ASSIGN_OR_RETURN(
          values_[op.dst].tensor,
          builder_.Reshaped(values_[op.srcs[0]].tensor, reshape->shape));
      return absl::OkStatus();
    }
    state->parameters = ReadParameters(op);
    std::vector<Reads> reads = ParameterReads(op, *state);
    ASSIGN_OR_RETURN(std::vector<PlanTensor> srcs, SrcTensors(op));
    reads.push_back({Operand::kSrc, std::move(srcs)});
    for (const PlanTensor& src : reads.back().tensors) {
      state->src_layouts.push_back(src.layout);
    }
    ASSIGN_OR_RETURN(
        std::unique_ptr<Primitive> primitive,
        CreateForward(op.desc, state->src_layouts, builder_.backend()));
    if (primitive->takes(Operand::kLabels)) {
      reads.push_back({Operand::kLabels, {LabelsTensor(*primitive)}});
    }
    ASSIGN_OR_RETURN(state->written,
                     builder_.Emit(op.name, std::move(primitive), reads));
    if (std::holds_alternative<DropoutDesc>(op.desc)) {
      builder_.plan().instructions.back().is_seeded = true;
    }
    if (op.dst < 0) return FinishLoss(op, *state);
    values_[op.dst].tensor = Find(state->written, Operand::kDst)[0];
    if (!MovesAverages(op)) return absl::OkStatus();
    return AddMovingAverages(std::get<BatchNormStep>(op.desc), op, *state);
  }

  PlanTensor LabelsTensor(const Primitive& loss) {
    const MemoryLayout& layout = loss.layout(Operand::kLabels);
    builder_.plan().labels = layout;
    PlanBuffer buffer;
    buffer.space = BufferSpace::kLabels;
    buffer.size_bytes = layout.size_bytes;
    return {builder_.AddBuffer(buffer), layout};
  }

  absl::Status FinishLoss(const ProgramOp& op, const OpState& state) {
    ExecutionPlan& plan = builder_.plan();
    plan.loss_buffer = Find(state.written, Operand::kLoss)[0].buffer;
    plan.buffers[plan.loss_buffer].live_at_end = true;
    for (const PlanTensor& correct : Find(state.written, Operand::kCorrect)) {
      plan.correct_buffer = correct.buffer;
      plan.buffers[correct.buffer].live_at_end = true;
    }
    if (!is_training_) RETURN_IF_ERROR(KeepOutputs());
    for (const PlanTensor& gradient : Find(state.written, Operand::kDiffSrc)) {
      values_[op.srcs[0]].gradients.push_back(gradient);
    }
    return absl::OkStatus();
  }

  // The loss reads them row-major; its instruction is the last one.
  absl::Status KeepOutputs() {
    ExecutionPlan& plan = builder_.plan();
    for (const BoundOperand& bound : plan.instructions.back().operands) {
      if (bound.operand == Operand::kSrc) plan.outputs_buffer = bound.buffer;
    }
    PlanBuffer& outputs = plan.buffers[plan.outputs_buffer];
    outputs.live_at_end = true;
    if (outputs.space == BufferSpace::kArena) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "compile a model: its loss reads the input itself: put a layer between "
        "them");
  }

  absl::Status AddMovingAverages(const BatchNormStep& step, const ProgramOp& op,
                                 const OpState& state) {
    const Operand roles[] = {Operand::kMean, Operand::kVariance};
    const double m = static_cast<double>(step.desc.batch) * step.desc.height *
                     step.desc.width;
    for (int i = 0; i < 2; ++i) {
      const PlanTensor batch = Find(state.written, roles[i])[0];
      if (!batch.layout.is_row_major()) {
        return absl::InternalError(
            absl::StrCat(OperandName(roles[i]),
                         " is not row-major: ", batch.layout.ToString()));
      }
      builder_.plan().buffers[batch.buffer].live_at_end = true;
      MovingAverage average;
      average.batch_buffer = batch.buffer;
      average.parameter = op.parameters[2 + i];
      average.momentum = step.momentum;
      // The moving variance is that of the population, as in PyTorch and
      // TensorFlow's fused batch norm.
      if (roles[i] == Operand::kVariance && m > 1) average.scale = m / (m - 1);
      builder_.plan().moving_averages.push_back(average);
    }
    return absl::OkStatus();
  }

  absl::Status AddBackward(const ProgramOp& op, const OpState& state) {
    if (op.dst < 0 || !values_[op.dst].needs_gradient) return absl::OkStatus();
    builder_.UseDevice(op.device);
    ASSIGN_OR_RETURN(PlanTensor gradient,
                     builder_.Sum(op.name, values_[op.dst].gradients));
    if (std::holds_alternative<ReshapeDesc>(op.desc)) {
      ASSIGN_OR_RETURN(
          gradient, builder_.Reshaped(gradient, program_.values[op.srcs[0]]));
      AddValueGradients(op, {gradient});
      return absl::OkStatus();
    }
    if (std::holds_alternative<AddDesc>(op.desc)) {
      AddValueGradients(op, std::vector<PlanTensor>(op.srcs.size(), gradient));
      return absl::OkStatus();
    }
    if (std::holds_alternative<BatchNormStep>(op.desc) && !MovesAverages(op)) {
      return absl::UnimplementedError(
          "no gradient passes through a frozen batch norm");
    }
    if (EndsWithRelu(op.desc)) {
      ASSIGN_OR_RETURN(gradient, AddReluBackward(op, gradient));
    }
    ASSIGN_OR_RETURN(const std::vector<Reads> reads,
                     BackwardReads(op, state, gradient));
    BackwardNeeds needs;
    needs.src = values_[op.srcs[0]].needs_gradient;
    needs.parameters = TrainsAny(op);
    ASSIGN_OR_RETURN(
        std::vector<std::unique_ptr<Primitive>> primitives,
        CreateBackward(op.desc, state.src_layouts, needs, builder_.backend()));
    // Another device goes on with the source's gradient: that one first.
    if (builder_.DeviceOf(values_[op.srcs[0]].tensor) != op.device) {
      std::reverse(primitives.begin(), primitives.end());
    }
    for (std::unique_ptr<Primitive>& primitive : primitives) {
      // A parameter's gradient may have gone to another device.
      builder_.UseDevice(op.device);
      ASSIGN_OR_RETURN(const std::vector<Written> written,
                       builder_.Emit(op.name, std::move(primitive), reads));
      AddValueGradients(op, Find(written, Operand::kDiffSrc));
      RETURN_IF_ERROR(
          AddParameterGradient(op, 0, Find(written, Operand::kDiffWeights)));
      RETURN_IF_ERROR(
          AddParameterGradient(op, 1, Find(written, Operand::kDiffBias)));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<PlanTensor> AddReluBackward(const ProgramOp& op,
                                             const PlanTensor& gradient) {
    const PlanTensor& dst = values_[op.dst].tensor;
    ASSIGN_OR_RETURN(
        std::unique_ptr<Primitive> primitive,
        builder_.backend()->Create(ActivationDesc{ActivationKind::kRelu},
                                   Pass::kBackward, {dst.layout}));
    ASSIGN_OR_RETURN(const std::vector<Written> written,
                     builder_.Emit(op.name, std::move(primitive),
                                   {{Operand::kDst, {dst}},
                                    {Operand::kDiffDst, {gradient}}}));
    return Find(written, Operand::kDiffSrc)[0];
  }

  absl::StatusOr<std::vector<Reads>> BackwardReads(const ProgramOp& op,
                                                   const OpState& state,
                                                   const PlanTensor& gradient) {
    std::vector<Reads> reads = ParameterReads(op, state);
    ASSIGN_OR_RETURN(std::vector<PlanTensor> srcs, SrcTensors(op));
    reads.push_back({Operand::kSrc, std::move(srcs)});
    reads.push_back({Operand::kDst, {values_[op.dst].tensor}});
    reads.push_back({Operand::kDiffDst, {gradient}});
    for (const Operand role :
         {Operand::kMean, Operand::kVariance, Operand::kWorkspace}) {
      reads.push_back({role, Find(state.written, role)});
    }
    return reads;
  }

  void AddValueGradients(const ProgramOp& op,
                         const std::vector<PlanTensor>& gradients) {
    for (size_t i = 0; i < gradients.size(); ++i) {
      ValueState& src = values_[op.srcs[i]];
      if (src.needs_gradient) src.gradients.push_back(gradients[i]);
    }
  }

  // Takes the gradient of the operation's `index`th parameter. The last one of
  // a parameter makes its canonical gradient.
  absl::Status AddParameterGradient(const ProgramOp& op, size_t index,
                                    const std::vector<PlanTensor>& gradients) {
    if (gradients.empty()) return absl::OkStatus();
    const int parameter = op.parameters[index];
    if (!IsTrained(parameter)) return absl::OkStatus();
    ParameterState& state = parameter_states_[parameter];
    if (op.parts > 1) return AddPartGradient(op, parameter, gradients[0]);
    state.gradients.push_back(gradients[0]);
    if (--state.uses_left > 0) return absl::OkStatus();
    builder_.UseDevice(GradientDevice(parameter));
    ASSIGN_OR_RETURN(const PlanTensor sum,
                     builder_.Sum(op.name, state.gradients));
    ASSIGN_OR_RETURN(const PlanTensor canonical,
                     builder_.InLayout(sum, state.tensor.layout));
    // Whoever writes this buffer writes straight to the gradient.
    PlanBuffer& buffer = builder_.plan().buffers[canonical.buffer];
    buffer.space = BufferSpace::kGradient;
    buffer.index = parameter;
    return AddPenalty(parameter, canonical.buffer);
  }

  // Copies the gradient of a part to its place in the canonical one.
  absl::Status AddPartGradient(const ProgramOp& op, int parameter,
                               const PlanTensor& gradient) {
    const Shape& shape = parameters_[parameter].shape;
    builder_.UseDevice(GradientDevice(parameter));
    const PlanTensor part = builder_.ExternalPart(
        BufferSpace::kGradient, parameter, shape, op.part, op.parts);
    builder_.UseDevice(op.device);
    ASSIGN_OR_RETURN(const PlanTensor canonical,
                     builder_.InLayout(gradient, part.layout));
    builder_.UseDevice(GradientDevice(parameter));
    builder_.EmitTransfer(canonical, part);
    if (--parameter_states_[parameter].uses_left > 0) return absl::OkStatus();
    const PlanTensor whole =
        builder_.ExternalTensor(BufferSpace::kGradient, parameter, shape);
    return AddPenalty(parameter, whole.buffer);
  }

  // A penalty adds to the loss too: it needs both on one device.
  int GradientDevice(int parameter) const {
    return parameters_[parameter].l2 == 0
               ? builder_.DeviceOf(parameter_states_[parameter].tensor)
               : program_.ops.back().device;
  }

  // Adds the L2 penalty of a parameter that has one to the loss, and to the
  // gradient if there is one.
  absl::Status AddPenalty(int parameter, int gradient) {
    L2PenaltyDesc desc;
    desc.scale = parameters_[parameter].l2;
    if (desc.scale == 0) return absl::OkStatus();
    desc.shape = parameters_[parameter].shape;
    desc.phase = program_.phase;
    builder_.UseDevice(GradientDevice(parameter));
    ASSIGN_OR_RETURN(const PlanTensor weights,
                     builder_.OnDevice(parameter_states_[parameter].tensor));
    ASSIGN_OR_RETURN(
        std::unique_ptr<Primitive> primitive,
        builder_.backend()->Create(desc, Pass::kForward, {weights.layout}));
    std::vector<BoundOperand> operands = {
        {Operand::kWeights, 0, weights.buffer},
        {Operand::kLoss, 0, builder_.plan().loss_buffer}};
    if (gradient >= 0) {
      operands.push_back({Operand::kDiffWeights, 0, gradient});
    }
    if (primitive->takes(Operand::kScratch)) {
      const PlanTensor scratch =
          builder_.NewTensor(primitive->layout(Operand::kScratch));
      operands.push_back({Operand::kScratch, 0, scratch.buffer});
    }
    builder_.EmitBound(parameters_[parameter].name, std::move(primitive),
                       std::move(operands));
    return absl::OkStatus();
  }

  absl::Status KeepInputGradient() {
    if (!options_.input_gradient) return absl::OkStatus();
    ValueState& input = values_[0];
    builder_.UseDevice(builder_.DeviceOf(input.tensor));
    ASSIGN_OR_RETURN(const PlanTensor sum,
                     builder_.Sum("input", input.gradients));
    ASSIGN_OR_RETURN(const PlanTensor canonical,
                     builder_.InLayout(sum, input.tensor.layout));
    builder_.plan().buffers[canonical.buffer].live_at_end = true;
    builder_.plan().input_gradient_buffer = canonical.buffer;
    return absl::OkStatus();
  }

  const Program& program_;
  const absl::Span<const ModelGraph::Parameter> parameters_;
  const PlanOptions options_;
  const bool is_training_;
  PlanBuilder builder_;
  std::vector<ValueState> values_;
  std::vector<OpState> ops_;
  std::vector<ParameterState> parameter_states_;
};

}  // namespace

absl::StatusOr<ExecutionPlan> CompilePlan(
    const Program& program, absl::Span<const ModelGraph::Parameter> parameters,
    const PlanOptions& options, absl::Span<Backend* const> backends) {
  return PlanCompiler(program, parameters, options, backends).Run();
}

}  // namespace muster
