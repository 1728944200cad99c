#include "worker/model/program.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

template <typename Desc, typename = void>
constexpr bool kHasPhase = false;
template <typename Desc>
constexpr bool kHasPhase<Desc, std::void_t<decltype(Desc::phase)>> = true;

template <typename Desc, typename = void>
constexpr bool kHasDstShape = false;
template <typename Desc>
constexpr bool kHasDstShape<Desc, std::void_t<decltype(&Desc::dst_shape)>> =
    true;

template <typename Desc, typename = void>
constexpr bool kIsLoss = false;
template <typename Desc>
constexpr bool kIsLoss<Desc, std::void_t<decltype(Desc::kIsLoss)>> = true;

struct IsLoss {
  template <typename Desc>
  bool operator()(const Desc& /*desc*/) const {
    return kIsLoss<Desc>;
  }
};

// Sets the flag of the losses, which alone have it.
struct WeighLoss {
  template <typename Desc>
  void operator()([[maybe_unused]] Desc& desc) const {
    if constexpr (kIsLoss<Desc>) desc.weighted = true;
  }
};

// Sets the phase of those descriptions that have one.
struct SetPhase {
  Phase phase;
  void operator()(BatchNormStep& step) const { step.desc.phase = phase; }
  template <typename Desc>
  void operator()([[maybe_unused]] Desc& desc) const {
    if constexpr (kHasPhase<Desc>) desc.phase = phase;
  }
};

// The shape that an operation makes: its source's, if it does not say.
struct ResultShape {
  const Shape& src;
  Shape operator()(const ReshapeDesc& desc) const { return desc.shape; }
  template <typename Desc>
  Shape operator()([[maybe_unused]] const Desc& desc) const {
    if constexpr (kHasDstShape<Desc>) {
      return desc.dst_shape();
    } else {
      return src;
    }
  }
};

// Fails if one row more than the batch would overflow a Shape.
absl::StatusOr<Shape> CheckedBatch(int64_t batch_size, const Shape& example) {
  std::vector<int64_t> dims = {batch_size};
  dims.insert(dims.end(), example.dims().begin(), example.dims().end());
  return Shape::Create(dims);
}

class Lowering {
 public:
  Lowering(const ModelGraph& graph, int64_t batch_size, Phase phase)
      : graph_(graph), batch_size_(batch_size) {
    program_.phase = phase;
  }

  absl::StatusOr<Program> Run() {
    for (const ModelGraph::Node& node : graph_.nodes()) {
      absl::StatusOr<Shape> shape = CheckedBatch(batch_size_, node.shape);
      if (!shape.ok()) {
        return Annotate(shape.status(),
                        absl::StrCat("layer '", node.name, "' with batch size ",
                                     batch_size_));
      }
      if (node.layer == nullptr) {
        program_.values.push_back(*std::move(shape));
        value_of_node_.push_back(0);
        continue;
      }
      AddNode(node);
    }
    return std::move(program_);
  }

 private:
  void AddNode(const ModelGraph::Node& node) {
    std::vector<int> srcs;
    for (const int input : node.inputs) srcs.push_back(value_of_node_[input]);
    for (LayerOperation& operation : node.layer->Lower(batch_size_)) {
      const bool inference = program_.phase == Phase::kInference;
      if (inference && std::holds_alternative<DropoutDesc>(operation.desc)) {
        continue;
      }
      ProgramOp op;
      op.name = node.name;
      op.desc = std::move(operation.desc);
      op.srcs = std::move(srcs);
      for (const int parameter : operation.parameters) {
        op.parameters.push_back(node.parameters[parameter]);
      }
      std::visit(
          SetPhase{HasFrozenAverages(op) ? Phase::kInference : program_.phase},
          op.desc);
      if (!std::visit(IsLoss(), op.desc)) {
        op.dst = static_cast<int>(program_.values.size());
        program_.values.push_back(
            std::visit(ResultShape{program_.values[op.srcs[0]]}, op.desc));
      }
      srcs = {op.dst};
      program_.ops.push_back(std::move(op));
    }
    value_of_node_.push_back(srcs[0]);
  }

  // A batch norm that is frozen takes its averages, and leaves them as they
  // are.
  bool HasFrozenAverages(const ProgramOp& op) const {
    return std::holds_alternative<BatchNormStep>(op.desc) &&
           graph_.parameters()[op.parameters.back()].kind == FROZEN;
  }

  const ModelGraph& graph_;
  const int64_t batch_size_;
  Program program_;
  std::vector<int> value_of_node_;
};

// The ops that read each value.
std::vector<std::vector<int>> ReadersOf(const Program& program) {
  std::vector<std::vector<int>> readers(program.values.size());
  for (size_t i = 0; i < program.ops.size(); ++i) {
    for (const int src : program.ops[i].srcs) {
      readers[src].push_back(static_cast<int>(i));
    }
  }
  return readers;
}

bool IsRelu(const ProgramOp& op) {
  const auto* desc = std::get_if<ActivationDesc>(&op.desc);
  return desc != nullptr && desc->kind == ActivationKind::kRelu;
}

// Whether the backends' fast path has this pool.
bool IsFastPool(const PoolDesc& desc) {
  const WindowDesc& w = desc.window;
  return desc.kind == PoolKind::kMax && w.kernel_h == 2 && w.kernel_w == 2 &&
         w.stride_h == 2 && w.stride_w == 2 && w.pad_top == 0 &&
         w.pad_bottom == 0 && w.pad_left == 0 && w.pad_right == 0;
}

// Merges the ReLU into its only reader. False if that cannot be.
bool MergeForward(const ProgramOp& relu, ProgramOp* reader) {
  auto* pool = std::get_if<PoolDesc>(&reader->desc);
  if (pool == nullptr || !IsFastPool(*pool)) return false;
  pool->relu_before = true;
  reader->srcs = relu.srcs;
  return true;
}

// Merges the ReLU into what makes its source. False if that cannot be.
bool MergeBackward(const ProgramOp& relu, ProgramOp* maker) {
  if (auto* conv = std::get_if<Conv2dDesc>(&maker->desc)) {
    conv->relu = true;
  } else if (auto* dense = std::get_if<DenseDesc>(&maker->desc)) {
    dense->relu = true;
  } else {
    return false;
  }
  maker->dst = relu.dst;
  return true;
}

}  // namespace

absl::StatusOr<Program> LowerModel(const ModelGraph& graph, int64_t batch_size,
                                   Phase phase) {
  if (batch_size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the batch size must be positive, is ", batch_size));
  }
  return Lowering(graph, batch_size, phase).Run();
}

void WeighRows(Program* program) {
  std::visit(WeighLoss(), program->ops.back().desc);
}

void FuseActivations(Program* program) {
  const std::vector<std::vector<int>> readers = ReadersOf(*program);
  std::vector<int> maker(program->values.size(), -1);
  std::vector<ProgramOp> kept;
  for (size_t i = 0; i < program->ops.size(); ++i) {
    ProgramOp& op = program->ops[i];
    if (IsRelu(op)) {
      const std::vector<int>& after = readers[op.dst];
      if (after.size() == 1 && MergeForward(op, &program->ops[after[0]])) {
        continue;
      }
      const int before = maker[op.srcs[0]];
      if (before >= 0 && readers[op.srcs[0]].size() == 1 &&
          MergeBackward(op, &kept[before])) {
        maker[op.dst] = before;
        continue;
      }
    }
    if (op.dst >= 0) maker[op.dst] = static_cast<int>(kept.size());
    kept.push_back(std::move(op));
  }
  program->ops = std::move(kept);
}

}  // namespace muster
