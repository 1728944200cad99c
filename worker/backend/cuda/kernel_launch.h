// How a kernel of our own is launched: through the table of functions, so that
// a test can refuse it, or run it on the host.
//
// A file x_kernel.cu has kernels and, below them, launchers; x_kernel.h
// declares the launchers. nvcc compiles it for the device; tests compile the
// same file with g++ (tests/worker/backend/cuda/kernel_on_host.h), where
// threads are loops.
#ifndef WORKER_BACKEND_CUDA_KERNEL_LAUNCH_H_
#define WORKER_BACKEND_CUDA_KERNEL_LAUNCH_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/backend/cuda/gpu_functions.h"
#include "worker/backend/cuda/gpu_status.h"
#include "worker/backend/cuda/host_kernel.h"

namespace muster {

// Where a launcher puts its kernel. A view.
struct KernelStream {
  const GpuFunctions* gpu = nullptr;
  cudaStream_t stream = nullptr;
};

// Threads of a block that works on one element, or a few, by each.
constexpr int kBlockThreads = 256;
// Enough blocks to fill any device; a kernel's threads go on to further
// elements in steps of the whole grid.
constexpr int64_t kMostBlocks = 4096;

// Blocks for a loop over `elements`.
inline dim3 BlocksFor(int64_t elements) {
  const int64_t blocks = (elements + kBlockThreads - 1) / kBlockThreads;
  return dim3(static_cast<unsigned>(
      std::max<int64_t>(1, std::min(blocks, kMostBlocks))));
}

// Starts `kernel`, called `name` in messages; returns at once. Errors: Internal
// if it cannot be started.
template <typename... Parameters, typename... Arguments>
absl::Status Launch(const KernelStream& to, const char* name,
                    void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
                    Arguments... arguments) {
  return [&](Parameters... parameters) {
    void* pointers[] = {
        const_cast<void*>(static_cast<const void*>(&parameters))...};
#ifdef __CUDACC__
    const void* const function = reinterpret_cast<const void*>(kernel);
#else
    const TypedHostKernel<Parameters...> on_host(kernel);
    const void* const function = static_cast<const HostKernel*>(&on_host);
#endif
    return CheckCuda(*to.gpu,
                     to.gpu->cuda.LaunchKernel(function, blocks, threads,
                                               pointers, 0, to.stream),
                     [&] { return absl::StrCat("launch ", name); });
  }(static_cast<Parameters>(arguments)...);
}

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_KERNEL_LAUNCH_H_
