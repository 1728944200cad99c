#ifndef WORKER_BACKEND_CUDA_GPU_LIBRARIES_H_
#define WORKER_BACKEND_CUDA_GPU_LIBRARIES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/backend/cuda/gpu_functions.h"

namespace muster {

// The functions of the CUDA runtime, which is part of the program, and of
// cuDNN, cuBLASLt and NCCL, which are looked for in the folders of
// `library_path` (separated by colons), where the system's loader looks, and in
// /usr/local/cuda/lib64. cuDNN's own parts must be beside libcudnn.so.9, where
// it looks for them, or where the loader looks. Asks for no driver and no
// device. What was loaded stays until the program ends.
//
// Without NCCL its members are empty. Errors: InvalidArgument if a folder is
// none; Unavailable if cuDNN or cuBLASLt is nowhere; FailedPrecondition if a
// library is broken (and another one nowhere), of another version, or without
// one of its parts.
absl::StatusOr<std::unique_ptr<const GpuFunctions>> LoadGpuFunctions(
    absl::string_view library_path);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_GPU_LIBRARIES_H_
