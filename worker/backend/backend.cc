#include "worker/backend/backend.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// More threads than any machine has: a typing error.
constexpr int kMaxComputeThreads = 1024;
// More parts of one card than can be of use.
constexpr int kMaxVirtualDevices = 64;

}  // namespace

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

Backend::Created CreatePrimitive(Backend* backend, const Operation& operation,
                                 Pass pass,
                                 absl::Span<const MemoryLayout> layouts) {
  DeviceStreams* const streams = backend->streams();
  if (streams != nullptr) RETURN_IF_ERROR(streams->MakeCurrent());
  return backend->Create(operation, pass, layouts);
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
