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
#include "worker/model/plan_parameters.h"
#include "worker/model/primitive_factory.h"

namespace muster {
namespace {

using Reads = PlanBuilder::Reads;
using Written = PlanBuilder::Written;

// Adds forward and backward of one micro-batch after another; the loss, and the
// gradients of weights that have a pass of their own, are made of all of them
// at once. Without micro-batches there is one, the batch.
class PlanCompiler {
 public:
  PlanCompiler(const Program& program,
               absl::Span<const ModelGraph::Parameter> parameters,
               const PlanOptions& options, absl::Span<Backend* const> backends)
      : whole_(program),
        program_(options.micro_batch == nullptr ? program
                                                : *options.micro_batch),
        options_(options),
        is_training_(program.phase == Phase::kTraining),
        micro_batches_(program.values[0].dim(0) / program_.values[0].dim(0)),
        builder_(backends),
        parameters_(parameters, whole_, &builder_) {
    for (MicroBatch& micro : micro_batches_) {
      micro.values.resize(program_.values.size());
      micro.ops.resize(program_.ops.size());
    }
  }

  absl::StatusOr<ExecutionPlan> Run() {
    RETURN_IF_ERROR(AddInput());
    FindNeeds();
    for (MicroBatch& micro : micro_batches_) {
      RETURN_IF_ERROR(AddForward(&micro));
    }
    RETURN_IF_ERROR(Annotate(AddLoss(), Title(whole_.ops.back())));
    if (!is_training_) {
      RETURN_IF_ERROR(parameters_.AddPenalties());
      return std::move(builder_.plan());
    }
    for (MicroBatch& micro : micro_batches_) {
      RETURN_IF_ERROR(AddBackward(&micro));
    }
    if (is_divided()) RETURN_IF_ERROR(AddJoinedWeights());
    RETURN_IF_ERROR(KeepInputGradient());
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
    std::vector<PlanTensor> parameters;
    std::vector<MemoryLayout> src_layouts;
    std::vector<Written> written;
    // Divided: the gradient that the one of the weights is made of.
    PlanTensor diff_dst;
  };
  struct MicroBatch {
    // As those of the program.
    std::vector<ValueState> values;
    std::vector<OpState> ops;
  };

  static std::string Title(const ProgramOp& op) {
    return absl::StrCat("compile layer '", op.name, "'");
  }
  bool is_divided() const { return micro_batches_.size() > 1; }
  int num_micro_batches() const {
    return static_cast<int>(micro_batches_.size());
  }

  // It lies on the device of the first operation that reads it.
  absl::Status AddInput() {
    int device = 0;
    for (size_t i = program_.ops.size(); i-- > 0;) {
      const std::vector<int>& srcs = program_.ops[i].srcs;
      if (std::count(srcs.begin(), srcs.end(), 0) > 0) {
        device = program_.ops[i].device;
      }
    }
    builder_.UseDevice(device);
    const PlanTensor input =
        builder_.ExternalTensor(BufferSpace::kInput, 0, whole_.values[0]);
    ASSIGN_OR_RETURN(const std::vector<PlanTensor> parts,
                     builder_.Divided(input, num_micro_batches()));
    for (size_t i = 0; i < parts.size(); ++i) {
      micro_batches_[i].values[0].tensor = parts[i];
    }
    return absl::OkStatus();
  }

  // Whether all micro-batches together make the gradient of its weights.
  bool JoinsWeights(const ProgramOp& op) const {
    return is_divided() && HasGradientByPart(op.desc);
  }

  // A value needs a gradient if a parameter that is trained, or an input of
  // which the gradient was asked for, lies behind it.
  void FindNeeds() {
    std::vector<bool> needs(program_.values.size(), false);
    needs[0] = options_.input_gradient;
    for (const ProgramOp& op : program_.ops) {
      parameters_.Expect(op, JoinsWeights(op) ? 1 : num_micro_batches());
      if (op.dst < 0) continue;
      bool trains = parameters_.TrainsAny(op);
      for (const int src : op.srcs) trains |= needs[src];
      needs[op.dst] = trains;
    }
    for (MicroBatch& micro : micro_batches_) {
      for (size_t i = 0; i < needs.size(); ++i) {
        micro.values[i].needs_gradient = needs[i];
      }
    }
  }

  // The sources, on the operation's device.
  absl::StatusOr<std::vector<PlanTensor>> SrcTensors(const ProgramOp& op,
                                                     const MicroBatch& micro) {
    std::vector<PlanTensor> tensors;
    for (const int src : op.srcs) {
      ASSIGN_OR_RETURN(const PlanTensor tensor,
                       builder_.OnDevice(micro.values[src].tensor));
      tensors.push_back(tensor);
    }
    return tensors;
  }

  // Whether it is a batch norm that makes moving averages; else it reads them.
  static bool MovesAverages(const ProgramOp& op) {
    const auto* step = std::get_if<BatchNormStep>(&op.desc);
    return step != nullptr && step->desc.phase == Phase::kTraining;
  }

  // How many parameters forward and backward may read.
  static size_t NumRead(const ProgramOp& op) {
    return MovesAverages(op) ? 2 : op.parameters.size();
  }
  static std::vector<Reads> ParameterReads(const OpState& state) {
    static constexpr Operand kRoles[] = {Operand::kWeights, Operand::kBias,
                                         Operand::kMean, Operand::kVariance};
    std::vector<Reads> reads;
    for (size_t i = 0; i < state.parameters.size(); ++i) {
      reads.push_back({kRoles[i], {state.parameters[i]}});
    }
    return reads;
  }

  absl::Status AddForward(MicroBatch* micro) {
    for (size_t i = 0; i < program_.ops.size(); ++i) {
      const ProgramOp& op = program_.ops[i];
      if (op.dst < 0) continue;
      RETURN_IF_ERROR(Annotate(AddForwardOf(i, micro), Title(op)));
    }
    return absl::OkStatus();
  }

  absl::Status AddForwardOf(size_t i, MicroBatch* micro) {
    const ProgramOp& op = program_.ops[i];
    OpState* const state = &micro->ops[i];
    PlanTensor* const dst = &micro->values[op.dst].tensor;
    builder_.UseDevice(op.device);
    if (const auto* reshape = std::get_if<ReshapeDesc>(&op.desc)) {
      ASSIGN_OR_RETURN(*dst, builder_.Reshaped(micro->values[op.srcs[0]].tensor,
                                               reshape->shape));
      return absl::OkStatus();
    }
    // Copies of parts are made once.
    state->parameters = micro == &micro_batches_.front()
                            ? parameters_.Read(op, NumRead(op))
                            : micro_batches_.front().ops[i].parameters;
    std::vector<Reads> reads = ParameterReads(*state);
    ASSIGN_OR_RETURN(std::vector<PlanTensor> srcs, SrcTensors(op, *micro));
    reads.push_back({Operand::kSrc, std::move(srcs)});
    for (const PlanTensor& src : reads.back().tensors) {
      state->src_layouts.push_back(src.layout);
    }
    ASSIGN_OR_RETURN(
        std::unique_ptr<Primitive> primitive,
        CreateForward(op.desc, state->src_layouts, builder_.backend()));
    ASSIGN_OR_RETURN(state->written,
                     builder_.Emit(op.name, std::move(primitive), reads));
    if (const auto* dropout = std::get_if<DropoutDesc>(&op.desc)) {
      Instruction& instruction = builder_.plan().instructions.back();
      instruction.is_seeded = true;
      instruction.elements = ElementsOf(
          op, dropout->shape, static_cast<int>(micro - micro_batches_.data()));
    }
    *dst = Find(state->written, Operand::kDst)[0];
    if (!MovesAverages(op)) return absl::OkStatus();
    return AddMovingAverages(std::get<BatchNormStep>(op.desc), op, *micro);
  }

  // Those of a value of `shape`, of the `micro`-th micro-batch.
  static ElementRuns ElementsOf(const ProgramOp& op, const Shape& shape,
                                int micro) {
    ElementRuns runs;
    runs.length = shape.num_elements() / shape.dim(0);
    const int64_t range = runs.length / op.num_parts;
    runs.stride = range * op.parts;
    runs.first = micro * shape.dim(0) * runs.stride + range * op.part;
    return runs;
  }

  // One loss for all micro-batches at once.
  absl::Status AddLoss() {
    const ProgramOp& op = whole_.ops.back();
    builder_.UseDevice(op.device);
    std::vector<PlanTensor> parts;
    for (const MicroBatch& micro : micro_batches_) {
      parts.push_back(micro.values[op.srcs[0]].tensor);
    }
    ASSIGN_OR_RETURN(const PlanTensor src, builder_.Joined(parts));
    ASSIGN_OR_RETURN(std::unique_ptr<Primitive> primitive,
                     CreateForward(op.desc, {src.layout}, builder_.backend()));
    std::vector<Reads> reads = {{Operand::kSrc, {src}}};
    for (const Operand operand : {Operand::kLabels, Operand::kRowWeights}) {
      if (!primitive->takes(operand)) continue;
      reads.push_back({operand, {builder_.OfBatch(*primitive, operand)}});
    }
    ASSIGN_OR_RETURN(const std::vector<Written> written,
                     builder_.Emit(op.name, std::move(primitive), reads));
    return FinishLoss(op.srcs[0], written);
  }

  absl::Status FinishLoss(int src, const std::vector<Written>& written) {
    ExecutionPlan& plan = builder_.plan();
    plan.loss_buffer = Find(written, Operand::kLoss)[0].buffer;
    plan.buffers[plan.loss_buffer].live_at_end = true;
    for (const PlanTensor& correct : Find(written, Operand::kCorrect)) {
      plan.correct_buffer = correct.buffer;
      plan.buffers[correct.buffer].live_at_end = true;
    }
    if (!is_training_) return KeepOutputs();
    for (const PlanTensor& gradient : Find(written, Operand::kDiffSrc)) {
      ASSIGN_OR_RETURN(const std::vector<PlanTensor> parts,
                       builder_.Divided(gradient, num_micro_batches()));
      for (size_t i = 0; i < parts.size(); ++i) {
        micro_batches_[i].values[src].gradients.push_back(parts[i]);
      }
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
                                 const MicroBatch& micro) {
    const OpState& state = micro.ops[&op - program_.ops.data()];
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
      average.count = step.desc.channels;
      average.begin = op.part * (step.desc.channels / op.num_parts);
      average.momentum = step.momentum;
      average.kept =
          &micro == &micro_batches_.front() ? step.momentum : double{1};
      // The moving variance is that of the population, as in PyTorch and
      // TensorFlow's fused batch norm.
      if (roles[i] == Operand::kVariance && m > 1) average.scale = m / (m - 1);
      average.scale /= num_micro_batches();
      builder_.plan().moving_averages.push_back(average);
    }
    return absl::OkStatus();
  }

  absl::Status AddBackward(MicroBatch* micro) {
    for (size_t i = program_.ops.size(); i-- > 0;) {
      const ProgramOp& op = program_.ops[i];
      if (op.dst < 0 || !micro->values[op.dst].needs_gradient) continue;
      RETURN_IF_ERROR(Annotate(AddBackwardOf(i, micro), Title(op)));
    }
    return absl::OkStatus();
  }

  absl::Status AddBackwardOf(size_t i, MicroBatch* micro) {
    const ProgramOp& op = program_.ops[i];
    builder_.UseDevice(op.device);
    ASSIGN_OR_RETURN(PlanTensor gradient,
                     builder_.Sum(op.name, micro->values[op.dst].gradients));
    if (std::holds_alternative<ReshapeDesc>(op.desc)) {
      ASSIGN_OR_RETURN(
          gradient, builder_.Reshaped(gradient, program_.values[op.srcs[0]]));
      AddValueGradients(op, {gradient}, micro);
      return absl::OkStatus();
    }
    if (std::holds_alternative<AddDesc>(op.desc)) {
      AddValueGradients(op, std::vector<PlanTensor>(op.srcs.size(), gradient),
                        micro);
      return absl::OkStatus();
    }
    if (std::holds_alternative<BatchNormStep>(op.desc) && !MovesAverages(op)) {
      return absl::UnimplementedError(
          "no gradient passes through a frozen batch norm");
    }
    if (EndsWithRelu(op.desc)) {
      ASSIGN_OR_RETURN(
          gradient,
          AddReluBackward(op, micro->values[op.dst].tensor, gradient));
    }
    micro->ops[i].diff_dst = gradient;
    return AddGradients(i, micro);
  }

  absl::Status AddGradients(size_t i, MicroBatch* micro) {
    const ProgramOp& op = program_.ops[i];
    const OpState& state = micro->ops[i];
    const ValueState& src = micro->values[op.srcs[0]];
    BackwardNeeds needs;
    needs.src = src.needs_gradient;
    needs.parameters = parameters_.TrainsAny(op) && !JoinsWeights(op);
    ASSIGN_OR_RETURN(
        std::vector<std::unique_ptr<Primitive>> primitives,
        CreateBackward(op.desc, state.src_layouts, needs, builder_.backend()));
    if (primitives.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::vector<Reads> reads,
                     BackwardReads(op, state, *micro));
    // Another device goes on with the source's gradient: that one first.
    if (builder_.DeviceOf(src.tensor) != op.device) {
      std::reverse(primitives.begin(), primitives.end());
    }
    for (std::unique_ptr<Primitive>& primitive : primitives) {
      RETURN_IF_ERROR(EmitBackward(op, std::move(primitive), reads, micro));
    }
    return absl::OkStatus();
  }

  absl::Status EmitBackward(const ProgramOp& op,
                            std::unique_ptr<Primitive> primitive,
                            const std::vector<Reads>& reads,
                            MicroBatch* micro) {
    // A parameter's gradient may have gone to another device.
    builder_.UseDevice(op.device);
    ASSIGN_OR_RETURN(const std::vector<Written> written,
                     builder_.Emit(op.name, std::move(primitive), reads));
    AddValueGradients(op, Find(written, Operand::kDiffSrc), micro);
    RETURN_IF_ERROR(
        parameters_.AddGradient(op, 0, Find(written, Operand::kDiffWeights)));
    return parameters_.AddGradient(op, 1, Find(written, Operand::kDiffBias));
  }

  absl::StatusOr<PlanTensor> AddReluBackward(const ProgramOp& op,
                                             const PlanTensor& dst,
                                             const PlanTensor& gradient) {
    ASSIGN_OR_RETURN(std::unique_ptr<Primitive> primitive,
                     CreatePrimitive(builder_.backend(),
                                     ActivationDesc{ActivationKind::kRelu},
                                     Pass::kBackward, {dst.layout}));
    ASSIGN_OR_RETURN(const std::vector<Written> written,
                     builder_.Emit(op.name, std::move(primitive),
                                   {{Operand::kDst, {dst}},
                                    {Operand::kDiffDst, {gradient}}}));
    return Find(written, Operand::kDiffSrc)[0];
  }

  absl::StatusOr<std::vector<Reads>> BackwardReads(const ProgramOp& op,
                                                   const OpState& state,
                                                   const MicroBatch& micro) {
    std::vector<Reads> reads = ParameterReads(state);
    ASSIGN_OR_RETURN(std::vector<PlanTensor> srcs, SrcTensors(op, micro));
    reads.push_back({Operand::kSrc, std::move(srcs)});
    reads.push_back({Operand::kDst, {micro.values[op.dst].tensor}});
    reads.push_back({Operand::kDiffDst, {state.diff_dst}});
    for (const Operand role :
         {Operand::kMean, Operand::kVariance, Operand::kWorkspace}) {
      reads.push_back({role, Find(state.written, role)});
    }
    return reads;
  }

  void AddValueGradients(const ProgramOp& op,
                         const std::vector<PlanTensor>& gradients,
                         MicroBatch* micro) {
    for (size_t i = 0; i < gradients.size(); ++i) {
      ValueState& src = micro->values[op.srcs[i]];
      if (src.needs_gradient) src.gradients.push_back(gradients[i]);
    }
  }

  // After all that other stages wait for.
  absl::Status AddJoinedWeights() {
    for (size_t i = whole_.ops.size(); i-- > 0;) {
      const ProgramOp& op = whole_.ops[i];
      if (!JoinsWeights(op) || !parameters_.TrainsAny(op)) continue;
      RETURN_IF_ERROR(Annotate(AddJoinedWeightsOf(i), Title(op)));
    }
    return absl::OkStatus();
  }

  absl::Status AddJoinedWeightsOf(size_t i) {
    const ProgramOp& op = whole_.ops[i];
    builder_.UseDevice(op.device);
    std::vector<PlanTensor> srcs, diff_dsts;
    for (const MicroBatch& micro : micro_batches_) {
      srcs.push_back(micro.values[op.srcs[0]].tensor);
      diff_dsts.push_back(micro.ops[i].diff_dst);
    }
    ASSIGN_OR_RETURN(const PlanTensor src, builder_.Joined(srcs));
    ASSIGN_OR_RETURN(const PlanTensor diff_dst, builder_.Joined(diff_dsts));
    BackwardNeeds needs;
    needs.src = false;
    ASSIGN_OR_RETURN(
        std::vector<std::unique_ptr<Primitive>> primitives,
        CreateBackward(op.desc, {src.layout}, needs, builder_.backend()));
    std::vector<Reads> reads = ParameterReads(micro_batches_.front().ops[i]);
    reads.push_back({Operand::kSrc, {src}});
    reads.push_back({Operand::kDiffDst, {diff_dst}});
    return EmitBackward(op, std::move(primitives.front()), reads,
                        &micro_batches_.front());
  }

  absl::Status KeepInputGradient() {
    if (!options_.input_gradient) return absl::OkStatus();
    std::vector<PlanTensor> parts;
    for (MicroBatch& micro : micro_batches_) {
      const ValueState& input = micro.values[0];
      builder_.UseDevice(builder_.DeviceOf(input.tensor));
      ASSIGN_OR_RETURN(const PlanTensor sum,
                       builder_.Sum("input", input.gradients));
      ASSIGN_OR_RETURN(const PlanTensor canonical,
                       builder_.InLayout(sum, input.tensor.layout));
      parts.push_back(canonical);
    }
    ASSIGN_OR_RETURN(const PlanTensor whole, builder_.Joined(parts));
    builder_.plan().buffers[whole.buffer].live_at_end = true;
    builder_.plan().input_gradient_buffer = whole.buffer;
    return absl::OkStatus();
  }

  const Program& whole_;
  // As long as `whole_`, of the rows of a micro-batch.
  const Program& program_;
  const PlanOptions options_;
  const bool is_training_;
  std::vector<MicroBatch> micro_batches_;
  PlanBuilder builder_;
  PlanParameters parameters_;
};

}  // namespace

absl::StatusOr<ExecutionPlan> CompilePlan(
    const Program& program, absl::Span<const ModelGraph::Parameter> parameters,
    const PlanOptions& options, absl::Span<Backend* const> backends) {
  return PlanCompiler(program, parameters, options, backends).Run();
}

}  // namespace muster
