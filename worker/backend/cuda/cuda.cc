// Registers "cuda" with the libraries that this machine has.
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/backend/backend.h"
#include "worker/backend/cuda/cuda_backend.h"
#include "worker/backend/cuda/gpu_libraries.h"

namespace muster {
namespace {

using Loaded = absl::StatusOr<std::unique_ptr<const GpuFunctions>>;

// Once a process: the flag with the path does not change.
absl::StatusOr<const GpuFunctions*> Load(const std::string& library_path) {
  static const auto* const loaded = new Loaded(LoadGpuFunctions(library_path));
  if (!loaded->ok()) return loaded->status();
  return (*loaded)->get();
}

[[maybe_unused]] const bool kRegistered =
    BackendRegistry::Register("cuda", MakeCudaFactory(&Load));

}  // namespace
}  // namespace muster
