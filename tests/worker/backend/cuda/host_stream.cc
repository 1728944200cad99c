#include "tests/worker/backend/cuda/host_stream.h"

#include "tests/worker/backend/cuda/kernel_on_host.h"
#include "worker/backend/cuda/host_kernel.h"

namespace muster {

HostStream::HostStream() {
  gpu_.cuda.GetErrorString = [](cudaError_t) { return "no"; };
  gpu_.cuda.LaunchKernel = [this](const void* kernel, dim3 blocks, dim3 threads,
                                  void** arguments, size_t, cudaStream_t) {
    if (launches_ == fail_at_) return cudaErrorLaunchFailure;
    ++launches_;
    const cudaError_t error = CheckGrid(blocks, threads);
    if (error != cudaSuccess) return error;
    RunOnHost(static_cast<const HostKernel*>(kernel)->Bind(arguments), blocks,
              threads);
    return cudaSuccess;
  };
}

}  // namespace muster
