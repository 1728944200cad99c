#ifndef WORKER_BACKEND_CUDA_UPDATE_RULE_H_
#define WORKER_BACKEND_CUDA_UPDATE_RULE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/optimizer/update_rule.h"
#include "worker/backend/cuda/cuda_device.h"
#include "worker/backend/device_rule.h"

namespace muster {

// Kernels of our own for a rule of common/optimizer, which outlives it, as does
// `device`. Errors: Unimplemented if there is none.
absl::StatusOr<std::unique_ptr<DeviceRule>> MakeCudaRule(
    CudaDevice* device, const UpdateRule* rule);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_UPDATE_RULE_H_
