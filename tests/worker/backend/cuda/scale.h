#ifndef TESTS_WORKER_BACKEND_CUDA_SCALE_H_
#define TESTS_WORKER_BACKEND_CUDA_SCALE_H_

#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// Returns factor * values, computed on the first CUDA device.
// Errors: Unavailable if there is no device or driver, with CUDA's reason.
absl::StatusOr<std::vector<float>> ScaleOnDevice(
    const std::vector<float>& values, float factor);

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_SCALE_H_
