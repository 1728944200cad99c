#ifndef WORKER_BACKEND_CUDA_L2_PENALTY_KERNEL_H_
#define WORKER_BACKEND_CUDA_L2_PENALTY_KERNEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/backend/cuda/kernel_launch.h"

namespace muster {

// The scratch of AddL2Penalty, in doubles.
int64_t L2PenaltyScratch(int64_t elements);

// A launcher: device memory, Internal on failure. *loss += scale * sum of
// weights^2 / 2, and diff_weights += scale * weights unless it is null. The sum
// is made in double, in a fixed order.
absl::Status AddL2Penalty(const KernelStream& to, double scale,
                          const float* weights, int64_t elements, double* loss,
                          float* diff_weights, double* scratch);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_L2_PENALTY_KERNEL_H_
