// The libraries of this machine.
#include "common/base/status_macros.h"
#include "tests/worker/backend/cuda/parity_libraries.h"
#include "worker/backend/cuda/gpu_libraries.h"

namespace muster {

absl::StatusOr<GpuFunctions> ParityLibraries() {
  ASSIGN_OR_RETURN(const auto gpu, LoadGpuFunctions(/*library_path=*/""));
  return *gpu;
}

}  // namespace muster
