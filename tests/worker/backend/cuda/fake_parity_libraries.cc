// The libraries of the fake card.
#include "tests/worker/backend/cuda/fake_gpu.h"
#include "tests/worker/backend/cuda/parity_libraries.h"

namespace muster {

absl::StatusOr<GpuFunctions> ParityLibraries() {
  static FakeGpu* const card = new FakeGpu();
  return card->functions();
}

}  // namespace muster
