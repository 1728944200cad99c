#include "worker/model/plan_parameters.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "worker/backend/backend.h"

namespace muster {

// Each lies on the device of the first operation that reads it.
PlanParameters::PlanParameters(
    absl::Span<const ModelGraph::Parameter> parameters, const Program& program,
    PlanBuilder* builder)
    : parameters_(parameters),
      program_(program),
      builder_(*builder),
      states_(parameters.size()) {
  std::vector<int> devices(parameters.size(), 0);
  for (size_t i = program.ops.size(); i-- > 0;) {
    for (const int parameter : program.ops[i].parameters) {
      devices[parameter] = program.ops[i].device;
    }
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    builder_.UseDevice(devices[i]);
    states_[i].tensor = builder_.ExternalTensor(
        BufferSpace::kParameter, static_cast<int>(i), parameters[i].shape);
  }
}

bool PlanParameters::TrainsAny(const ProgramOp& op) const {
  return std::any_of(op.parameters.begin(), op.parameters.end(),
                     [this](int parameter) {
                       return parameters_[parameter].kind == TRAINABLE;
                     });
}

bool PlanParameters::IsDivided(const ProgramOp& op, int parameter) const {
  return op.parts > 1 && op.part_dim < parameters_[parameter].shape.rank();
}

// A part has copies: its place in the parameter is not aligned, and another
// device may have it.
std::vector<PlanTensor> PlanParameters::Read(const ProgramOp& op,
                                             size_t count) {
  std::vector<PlanTensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    const int parameter = op.parameters[i];
    tensors.push_back(states_[parameter].tensor);
    if (!IsDivided(op, parameter)) continue;
    builder_.UseDevice(builder_.DeviceOf(tensors.back()));
    const PlanTensor part = builder_.ExternalPart(
        BufferSpace::kParameter, parameter, parameters_[parameter].shape,
        {op.part, op.num_parts, op.parts, op.part_dim});
    builder_.UseDevice(op.device);
    tensors.back() = builder_.NewTensor(part.layout);
    builder_.EmitTransfer(part, tensors.back());
  }
  return tensors;
}

void PlanParameters::Expect(const ProgramOp& op, int gradients) {
  for (const int parameter : op.parameters) {
    states_[parameter].expected += gradients;
    states_[parameter].of_an_operation = gradients;
  }
}

absl::Status PlanParameters::AddGradient(
    const ProgramOp& op, size_t index,
    const std::vector<PlanTensor>& gradient) {
  if (gradient.empty()) return absl::OkStatus();
  const int parameter = op.parameters[index];
  if (parameters_[parameter].kind != TRAINABLE) return absl::OkStatus();
  if (IsDivided(op, parameter)) {
    return AddPartGradient(op, parameter, gradient[0]);
  }
  State& state = states_[parameter];
  state.gradients.push_back(gradient[0]);
  if (--state.expected > 0) return absl::OkStatus();
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

absl::Status PlanParameters::AddPartGradient(const ProgramOp& op, int parameter,
                                             const PlanTensor& gradient) {
  State& state = states_[parameter];
  --state.expected;
  std::vector<PlanTensor>& summands = state.part_gradients[op.part];
  summands.push_back(gradient);
  if (static_cast<int>(summands.size()) < state.of_an_operation) {
    return absl::OkStatus();
  }
  const Shape& shape = parameters_[parameter].shape;
  builder_.UseDevice(GradientDevice(parameter));
  const PlanTensor part =
      builder_.ExternalPart(BufferSpace::kGradient, parameter, shape,
                            {op.part, op.num_parts, op.parts, op.part_dim});
  builder_.UseDevice(op.device);
  ASSIGN_OR_RETURN(const PlanTensor sum, builder_.Sum(op.name, summands));
  ASSIGN_OR_RETURN(const PlanTensor canonical,
                   builder_.InLayout(sum, part.layout));
  // By the part's device: the other one would wait for it, with gradients of
  // its own still to make.
  builder_.EmitTransfer(canonical, part);
  if (state.expected > 0) return absl::OkStatus();
  const PlanTensor whole =
      builder_.ExternalTensor(BufferSpace::kGradient, parameter, shape);
  return AddPenalty(parameter, whole.buffer);
}

int PlanParameters::GradientDevice(int parameter) const {
  return parameters_[parameter].l2 == 0
             ? builder_.DeviceOf(states_[parameter].tensor)
             : program_.ops.back().device;
}

// Adds the L2 penalty of a parameter that has one to the loss, and to the
// gradient if there is one.
absl::Status PlanParameters::AddPenalty(int parameter, int gradient) {
  L2PenaltyDesc desc;
  desc.scale = parameters_[parameter].l2;
  if (desc.scale == 0) return absl::OkStatus();
  desc.shape = parameters_[parameter].shape;
  desc.phase = program_.phase;
  builder_.UseDevice(GradientDevice(parameter));
  ASSIGN_OR_RETURN(const PlanTensor weights,
                   builder_.OnDevice(states_[parameter].tensor));
  ASSIGN_OR_RETURN(std::unique_ptr<Primitive> primitive,
                   CreatePrimitive(builder_.backend(), desc, Pass::kForward,
                                   {weights.layout}));
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

absl::Status PlanParameters::AddPenalties() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    RETURN_IF_ERROR(AddPenalty(static_cast<int>(i), /*gradient=*/-1));
  }
  return absl::OkStatus();
}

}  // namespace muster
