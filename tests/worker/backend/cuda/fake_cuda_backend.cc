// Registers "cuda" on two fake cards: a worker that links it runs as on a
// machine with GPUs, but slowly. FAKE_CARDS=none: as without a driver.
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/worker/backend/cuda/fake_gpu.h"
#include "worker/backend/backend.h"
#include "worker/backend/cuda/cuda_backend.h"

namespace muster {
namespace {

FakeCuda::Options Cards() {
  FakeCuda::Options options;
  options.devices.resize(2);
  const char* const cards = std::getenv("FAKE_CARDS");
  if (cards != nullptr && absl::string_view(cards) == "none") {
    options.no_device = cudaErrorInsufficientDriver;
    options.driver_version = 0;
  }
  return options;
}

absl::StatusOr<const GpuFunctions*> Load(const std::string&) {
  static FakeGpu* const gpu = new FakeGpu(Cards());
  return &gpu->functions();
}

[[maybe_unused]] const bool kRegistered =
    BackendRegistry::Register("cuda", MakeCudaFactory(&Load));

}  // namespace
}  // namespace muster
