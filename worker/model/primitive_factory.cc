#include "worker/model/primitive_factory.h"

#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

using Created = Backend::Created;
using CreatedList = absl::StatusOr<std::vector<std::unique_ptr<Primitive>>>;

struct ForwardCreator {
  absl::Span<const MemoryLayout> srcs;
  Backend* backend;

  Created operator()(const Conv2dDesc& desc) const {
    return backend->CreateConv2dForward(desc);
  }
  Created operator()(const DenseDesc& desc) const {
    return backend->CreateDenseForward(desc);
  }
  Created operator()(const ActivationDesc& desc) const {
    return backend->CreateActivationForward(desc, srcs[0]);
  }
  Created operator()(const PoolDesc& desc) const {
    return backend->CreatePoolForward(desc, srcs[0]);
  }
  Created operator()(const DropoutDesc& desc) const {
    return backend->CreateDropoutForward(desc, srcs[0]);
  }
  Created operator()(const BatchNormStep& step) const {
    return backend->CreateBatchNormForward(step.desc, srcs[0]);
  }
  Created operator()(const AddDesc& desc) const {
    return backend->CreateAdd(desc, srcs);
  }
  Created operator()(const ConcatDesc& desc) const {
    return backend->CreateConcatForward(desc, srcs);
  }
  Created operator()(const SoftmaxCrossEntropyDesc& desc) const {
    return backend->CreateSoftmaxCrossEntropy(desc);
  }
  Created operator()(const ReshapeDesc& /*desc*/) const {
    return absl::InternalError("a reshape has no primitive");
  }
};

struct BackwardCreator {
  absl::Span<const MemoryLayout> srcs;
  BackwardNeeds needs;
  Backend* backend;

  CreatedList operator()(const Conv2dDesc& desc) const {
    CreatedList list = None();
    if (needs.parameters) {
      RETURN_IF_ERROR(
          Append(backend->CreateConv2dBackwardWeights(desc), &*list));
    }
    if (needs.src) {
      RETURN_IF_ERROR(Append(backend->CreateConv2dBackwardData(desc), &*list));
    }
    return list;
  }
  CreatedList operator()(const DenseDesc& desc) const {
    CreatedList list = None();
    if (needs.parameters) {
      RETURN_IF_ERROR(
          Append(backend->CreateDenseBackwardWeights(desc), &*list));
    }
    if (needs.src) {
      RETURN_IF_ERROR(Append(backend->CreateDenseBackwardData(desc), &*list));
    }
    return list;
  }
  CreatedList operator()(const ActivationDesc& desc) const {
    return One(backend->CreateActivationBackward(desc, srcs[0]));
  }
  CreatedList operator()(const PoolDesc& desc) const {
    return One(backend->CreatePoolBackward(desc, srcs[0]));
  }
  CreatedList operator()(const DropoutDesc& desc) const {
    return One(backend->CreateDropoutBackward(desc, srcs[0]));
  }
  CreatedList operator()(const BatchNormStep& step) const {
    return One(backend->CreateBatchNormBackward(step.desc, srcs[0]));
  }
  CreatedList operator()(const ConcatDesc& desc) const {
    return One(backend->CreateConcatBackward(desc, srcs));
  }
  CreatedList operator()(const AddDesc& /*desc*/) const { return None(); }
  CreatedList operator()(const SoftmaxCrossEntropyDesc& /*desc*/) const {
    return None();
  }
  CreatedList operator()(const ReshapeDesc& /*desc*/) const { return None(); }

 private:
  static CreatedList None() {
    return std::vector<std::unique_ptr<Primitive>>();
  }
  static absl::Status Append(Created created,
                             std::vector<std::unique_ptr<Primitive>>* list) {
    if (!created.ok()) return created.status();
    list->push_back(*std::move(created));
    return absl::OkStatus();
  }
  static CreatedList One(Created created) {
    CreatedList list = None();
    RETURN_IF_ERROR(Append(std::move(created), &*list));
    return list;
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Primitive>> CreateForward(
    const OperationDesc& desc, absl::Span<const MemoryLayout> srcs,
    Backend* backend) {
  return std::visit(ForwardCreator{srcs, backend}, desc);
}

absl::StatusOr<std::vector<std::unique_ptr<Primitive>>> CreateBackward(
    const OperationDesc& desc, absl::Span<const MemoryLayout> srcs,
    const BackwardNeeds& needs, Backend* backend) {
  return std::visit(BackwardCreator{srcs, needs, backend}, desc);
}

bool EndsWithRelu(const OperationDesc& desc) {
  const auto* conv = std::get_if<Conv2dDesc>(&desc);
  const auto* dense = std::get_if<DenseDesc>(&desc);
  return (conv != nullptr && conv->relu) || (dense != nullptr && dense->relu);
}

}  // namespace muster
