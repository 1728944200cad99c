#ifndef WORKER_BACKEND_CUDA_CUDA_BACKEND_H_
#define WORKER_BACKEND_CUDA_CUDA_BACKEND_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/backend/backend.h"
#include "worker/backend/cuda/gpu_functions.h"

namespace muster {

// The entry that "cuda" is registered with. `load` gives the libraries'
// functions, which outlive every backend; tests give others. It is called for
// each list of devices and each backend, with GpuOptions::library_path.
BackendFactory MakeCudaFactory(
    std::function<absl::StatusOr<const GpuFunctions*>(const std::string&)>
        load);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_CUDA_BACKEND_H_
