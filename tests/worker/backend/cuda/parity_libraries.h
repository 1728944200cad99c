#ifndef TESTS_WORKER_BACKEND_CUDA_PARITY_LIBRARIES_H_
#define TESTS_WORKER_BACKEND_CUDA_PARITY_LIBRARIES_H_

#include "absl/status/statusor.h"
#include "worker/backend/cuda/gpu_functions.h"

namespace muster {

// The libraries of the card that the parity tests run on. Each binary links a
// definition of its own: the fake card's or this machine's, Unavailable where
// they are missing.
absl::StatusOr<GpuFunctions> ParityLibraries();

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_PARITY_LIBRARIES_H_
