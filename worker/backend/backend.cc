#include "worker/backend/backend.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// More threads than any machine has: a typing error.
constexpr int kMaxComputeThreads = 1024;
// More parts of one card than can be of use.
constexpr int kMaxVirtualDevices = 64;

// Calls the method that makes `pass` of an operation.
struct Creator {
  Backend* backend;
  Pass pass;
  absl::Span<const MemoryLayout> layouts;

  Backend::Created operator()(const Conv2dDesc& desc) const {
    if (pass == Pass::kForward) return backend->CreateConv2dForward(desc);
    if (pass == Pass::kBackwardData) {
      return backend->CreateConv2dBackwardData(desc);
    }
    return backend->CreateConv2dBackwardWeights(desc);
  }
  Backend::Created operator()(const DenseDesc& desc) const {
    if (pass == Pass::kForward) return backend->CreateDenseForward(desc);
    if (pass == Pass::kBackwardData) {
      return backend->CreateDenseBackwardData(desc);
    }
    return backend->CreateDenseBackwardWeights(desc);
  }
  Backend::Created operator()(const ActivationDesc& desc) const {
    return pass == Pass::kForward
               ? backend->CreateActivationForward(desc, layouts[0])
               : backend->CreateActivationBackward(desc, layouts[0]);
  }
  Backend::Created operator()(const PoolDesc& desc) const {
    return pass == Pass::kForward
               ? backend->CreatePoolForward(desc, layouts[0])
               : backend->CreatePoolBackward(desc, layouts[0]);
  }
  Backend::Created operator()(const DropoutDesc& desc) const {
    return pass == Pass::kForward
               ? backend->CreateDropoutForward(desc, layouts[0])
               : backend->CreateDropoutBackward(desc, layouts[0]);
  }
  Backend::Created operator()(const BatchNormDesc& desc) const {
    return pass == Pass::kForward
               ? backend->CreateBatchNormForward(desc, layouts[0])
               : backend->CreateBatchNormBackward(desc, layouts[0]);
  }
  Backend::Created operator()(const ConcatDesc& desc) const {
    return pass == Pass::kForward
               ? backend->CreateConcatForward(desc, layouts)
               : backend->CreateConcatBackward(desc, layouts);
  }
  Backend::Created operator()(const AddDesc& desc) const {
    return backend->CreateAdd(desc, layouts);
  }
  Backend::Created operator()(const SoftmaxCrossEntropyDesc& desc) const {
    return backend->CreateSoftmaxCrossEntropy(desc);
  }
  Backend::Created operator()(const L2PenaltyDesc& desc) const {
    return backend->CreateL2Penalty(desc, layouts[0]);
  }
};

bool HasPass(const Operation& operation, Pass pass) {
  if (pass == Pass::kForward) return true;
  const Gradient gradient =
      std::visit([](const auto& desc) { return desc.kGradient; }, operation);
  return gradient ==
         (pass == Pass::kBackward ? Gradient::kWhole : Gradient::kByPart);
}

// Whether a primitive of the operation is made for layouts that it is given.
bool FollowsLayouts(const Operation& operation) {
  return !std::holds_alternative<Conv2dDesc>(operation) &&
         !std::holds_alternative<DenseDesc>(operation) &&
         !std::holds_alternative<SoftmaxCrossEntropyDesc>(operation);
}

}  // namespace

Backend::Created Backend::Create(const Operation& operation, Pass pass,
                                 absl::Span<const MemoryLayout> layouts) {
  if (!HasPass(operation, pass)) {
    return absl::InternalError(absl::StrCat(
        "create a primitive on '", name(), "': operation ", operation.index(),
        " has no pass ", static_cast<int>(pass)));
  }
  if (FollowsLayouts(operation) && layouts.empty()) {
    return absl::InternalError(absl::StrCat(
        "create a primitive on '", name(), "': operation ", operation.index(),
        " wants the layouts of its sources, found none"));
  }
  return std::visit(Creator{this, pass, layouts}, operation);
}

absl::Status CheckGpuOptions(const GpuOptions& options) {
  // Written so that NaN fails.
  if (!(options.memory_fraction > 0 && options.memory_fraction <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--gpu_memory_fraction=", options.memory_fraction,
                     ": wanted more than 0, and at most 1"));
  }
  if (options.memory_limit_bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--gpu_memory_limit_mb: wanted 0 (no limit) or more, found ",
        static_cast<double>(options.memory_limit_bytes) / (1 << 20)));
  }
  if (options.virtual_devices < 1 ||
      options.virtual_devices > kMaxVirtualDevices) {
    return absl::InvalidArgumentError(
        absl::StrCat("--gpu_virtual_devices=", options.virtual_devices,
                     ": wanted 1 to ", kMaxVirtualDevices));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(
    absl::string_view name, const BackendOptions& options) {
  if (options.compute_threads < 1 ||
      options.compute_threads > kMaxComputeThreads) {
    return absl::InvalidArgumentError(absl::StrCat(
        "create backend '", name, "': compute_threads must be in [1, ",
        kMaxComputeThreads, "], got ", options.compute_threads));
  }
  RETURN_IF_ERROR(CheckGpuOptions(options.gpu));
  ASSIGN_OR_RETURN(const BackendFactory factory, BackendRegistry::Find(name));
  if (options.gpu.bf16 && !factory.bf16) {
    return absl::InvalidArgumentError(absl::StrCat(
        "compute.bf16: backend '", name,
        "' has no products of bf16; leave the field out, or take a device that "
        "has them (--device=cuda)"));
  }
  return factory.create(options);
}

}  // namespace muster
