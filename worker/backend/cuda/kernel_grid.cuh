// For kernels: a thread's place in a grid of one dimension, and sums over a
// block.
#ifndef WORKER_BACKEND_CUDA_KERNEL_GRID_CUH_
#define WORKER_BACKEND_CUDA_KERNEL_GRID_CUH_

#include <cstdint>

#include "worker/backend/cuda/kernel_launch.h"

namespace muster {

// A kernel over `elements` goes
//   for (int64_t i = GridIndex(); i < elements; i += GridSize())
__device__ inline int64_t GridIndex() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline int64_t GridSize() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

// The sum of `value` over the threads of a block, for all of them, always in
// the same order. Every thread of the block calls it; `shared` holds
// kBlockThreads values, and may be used again after the call.
// REQUIRES: blocks of kBlockThreads threads.
template <typename T>
__device__ T BlockSum(T value, T* shared) {
  constexpr int kRuns = 16;
  static_assert(kBlockThreads == kRuns * kRuns, "");
  shared[threadIdx.x] = value;
  __syncthreads();
  T sum = 0;
  if (threadIdx.x < kRuns) {
    for (int i = 0; i < kRuns; ++i) sum += shared[i * kRuns + threadIdx.x];
  }
  __syncthreads();
  if (threadIdx.x < kRuns) shared[threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < kRuns; ++i) sum += shared[i];
  __syncthreads();
  return sum;
}

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_KERNEL_GRID_CUH_
