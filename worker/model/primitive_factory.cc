#include "worker/model/primitive_factory.h"

#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// The layer's operation as a backend knows it; a reshape is none.
struct ToOperation {
  std::optional<Operation> operator()(const ReshapeDesc& /*desc*/) const {
    return std::nullopt;
  }
  std::optional<Operation> operator()(const BatchNormStep& step) const {
    return step.desc;
  }
  template <typename Desc>
  std::optional<Operation> operator()(const Desc& desc) const {
    return desc;
  }
};

std::vector<Pass> BackwardPasses(const Operation& operation,
                                 const BackwardNeeds& needs) {
  const Gradient gradient =
      std::visit([](const auto& desc) { return desc.kGradient; }, operation);
  if (gradient == Gradient::kNone) return {};
  if (gradient == Gradient::kWhole) return {Pass::kBackward};
  std::vector<Pass> passes;
  if (needs.parameters) passes.push_back(Pass::kBackwardWeights);
  if (needs.src) passes.push_back(Pass::kBackwardData);
  return passes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Primitive>> CreateForward(
    const OperationDesc& desc, absl::Span<const MemoryLayout> srcs,
    Backend* backend) {
  const std::optional<Operation> operation = std::visit(ToOperation{}, desc);
  if (!operation) return absl::InternalError("a reshape has no primitive");
  return CreatePrimitive(backend, *operation, Pass::kForward, srcs);
}

absl::StatusOr<std::vector<std::unique_ptr<Primitive>>> CreateBackward(
    const OperationDesc& desc, absl::Span<const MemoryLayout> srcs,
    const BackwardNeeds& needs, Backend* backend) {
  std::vector<std::unique_ptr<Primitive>> primitives;
  const std::optional<Operation> operation = std::visit(ToOperation{}, desc);
  if (!operation) return primitives;
  for (const Pass pass : BackwardPasses(*operation, needs)) {
    ASSIGN_OR_RETURN(auto primitive,
                     CreatePrimitive(backend, *operation, pass, srcs));
    primitives.push_back(std::move(primitive));
  }
  return primitives;
}

bool HasGradientByPart(const OperationDesc& desc) {
  const std::optional<Operation> operation = std::visit(ToOperation{}, desc);
  return operation && std::visit(
                          [](const auto& of_kind) {
                            return of_kind.kGradient == Gradient::kByPart;
                          },
                          *operation);
}

bool EndsWithRelu(const OperationDesc& desc) {
  const auto* conv = std::get_if<Conv2dDesc>(&desc);
  const auto* dense = std::get_if<DenseDesc>(&desc);
  return (conv != nullptr && conv->relu) || (dense != nullptr && dense->relu);
}

}  // namespace muster
