#include "worker/backend/cuda/dropout_kernel.h"
#include "worker/backend/cuda/kernel_grid.cuh"
#include "worker/backend/dropout_mask.h"

namespace muster {
namespace {

float ScaleOf(double rate) { return static_cast<float>(1 / (1 - rate)); }

__global__ void DropoutForwardKernel(double rate, const uint64_t* seed,
                                     float scale, const float* src, float* dst,
                                     uint8_t* mask, int64_t elements,
                                     ElementRuns runs) {
  const DropoutMask dropout(rate, *seed);
  for (int64_t i = GridIndex(); i < elements; i += GridSize()) {
    const bool keeps = dropout.Keeps(runs.IndexOf(i));
    mask[i] = keeps ? 1 : 0;
    dst[i] = keeps ? src[i] * scale : 0;
  }
}

__global__ void DropoutBackwardKernel(float scale, const uint8_t* mask,
                                      const float* diff_dst, float* diff_src,
                                      int64_t elements) {
  for (int64_t i = GridIndex(); i < elements; i += GridSize()) {
    diff_src[i] = mask[i] != 0 ? diff_dst[i] * scale : 0;
  }
}

}  // namespace

absl::Status DropoutForward(const KernelStream& to, double rate,
                            const uint64_t* seed, const float* src, float* dst,
                            uint8_t* mask, int64_t elements,
                            const ElementRuns& runs) {
  return Launch(to, "DropoutForward", DropoutForwardKernel, BlocksFor(elements),
                kBlockThreads, rate, seed, ScaleOf(rate), src, dst, mask,
                elements, runs);
}

absl::Status DropoutBackward(const KernelStream& to, double rate,
                             const uint8_t* mask, const float* diff_dst,
                             float* diff_src, int64_t elements) {
  return Launch(to, "DropoutBackward", DropoutBackwardKernel,
                BlocksFor(elements), kBlockThreads, ScaleOf(rate), mask,
                diff_dst, diff_src, elements);
}

}  // namespace muster
