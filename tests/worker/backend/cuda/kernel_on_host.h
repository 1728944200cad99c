// Lets g++ compile a .cu file of worker/backend/cuda, and runs its kernels in
// host memory: the threads of a grid become loops. The kernels are the same
// source, so their indices, orders and formulas are what is tested here.
//
// A generated file includes this header first and then the .cu file
// (kernels_on_host.bzl). CUDA's headers let g++ see __global__ and __device__
// as nothing; what else a kernel uses stands here.
#ifndef TESTS_WORKER_BACKEND_CUDA_KERNEL_ON_HOST_H_
#define TESTS_WORKER_BACKEND_CUDA_KERNEL_ON_HOST_H_

#include <cmath>
#include <functional>

#include "cuda_runtime_api.h"

// The memory of one block: blocks run one after another on the thread that
// launches.
#undef __shared__
#define __shared__ static thread_local

// A kernel's view of its place in the grid.
inline thread_local uint3 threadIdx = {};
inline thread_local uint3 blockIdx = {};
inline thread_local uint3 blockDim = {};
inline thread_local uint3 gridDim = {};

// Waits until every thread of the block has come here. Ends the process if one
// of them returns instead: a card may hang or go on with garbage.
void __syncthreads();

// Arithmetic that nvcc never contracts, nor g++: a product is stored first.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) {
  const volatile float product = a * b;
  return product;
}
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }

namespace muster {

// cudaErrorInvalidConfiguration for a grid that no device would start.
cudaError_t CheckGrid(dim3 blocks, dim3 threads);

// Calls `thread` once for each thread of a grid: blocks and the threads of one
// in order, but that each part of a kernel between barriers ends for the whole
// block before the next begins. Several host threads may run grids at once.
// REQUIRES: CheckGrid; `thread` runs no grid.
void RunOnHost(const std::function<void()>& thread, dim3 blocks, dim3 threads);

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_KERNEL_ON_HOST_H_
