#include <cmath>

#include "common/base/status_macros.h"
#include "worker/backend/cuda/kernel_grid.cuh"
#include "worker/backend/cuda/target_loss_kernel.h"

namespace muster {
namespace {

// The loss of one output, and its derivative.
struct LossAndSlope {
  float loss;
  float slope;
};

__device__ LossAndSlope CrossEntropy(float x, float target) {
  // exp of nothing positive: no overflow.
  const float decay = expf(-fabsf(x));
  const float sigmoid = (x < 0 ? decay : 1.0f) / (1.0f + decay);
  return {fmaxf(x, 0.0f) - x * target + log1pf(decay), sigmoid - target};
}

__device__ LossAndSlope SquaredError(float x, float target) {
  const float error = x - target;
  return {error * error, 2.0f * error};
}

// A thread takes a row at a time.
__global__ void TargetRowsKernel(int64_t batch, int64_t outputs, int64_t rows,
                                 TargetLossMemory memory) {
  const auto count = static_cast<float>(rows * outputs);
  for (int64_t n = GridIndex(); n < rows; n += GridSize()) {
    const float weight = memory.weights == nullptr ? 1.0f : memory.weights[n];
    double loss = 0;
    int64_t hit = 1;
    for (int64_t i = n * outputs; i < (n + 1) * outputs; ++i) {
      const float x = memory.src[i];
      const float target = memory.targets[i];
      const LossAndSlope result = memory.is_cross_entropy
                                      ? CrossEntropy(x, target)
                                      : SquaredError(x, target);
      loss += result.loss;
      if (!isfinite(x) || (x > 0) != (target > 0.5f)) hit = 0;
      if (memory.diff_src == nullptr) continue;
      memory.diff_src[i] = weight * (result.slope / count);
    }
    memory.row_losses[n] = weight * loss;
    memory.row_hits[n] = hit;
  }
  if (memory.diff_src == nullptr) return;
  for (int64_t i = rows * outputs + GridIndex(); i < batch * outputs;
       i += GridSize()) {
    memory.diff_src[i] = 0;
  }
}

// One block.
__global__ void SumTargetRowsKernel(int64_t rows, int64_t outputs,
                                    TargetLossMemory memory) {
  __shared__ double losses[kBlockThreads];
  __shared__ int64_t hits[kBlockThreads];
  double loss = 0;
  int64_t correct = 0;
  for (int64_t n = threadIdx.x; n < rows; n += kBlockThreads) {
    loss += memory.row_losses[n];
    correct += memory.row_hits[n];
  }
  loss = BlockSum(loss, losses);
  correct = BlockSum(correct, hits);
  if (threadIdx.x != 0) return;
  *memory.loss = loss / static_cast<double>(rows * outputs);
  if (memory.correct != nullptr) *memory.correct = correct;
}

}  // namespace

absl::Status TargetLoss(const KernelStream& to, int64_t batch, int64_t outputs,
                        int64_t rows, const TargetLossMemory& memory) {
  RETURN_IF_ERROR(Launch(to, "TargetLoss", TargetRowsKernel, BlocksFor(batch),
                         kBlockThreads, batch, outputs, rows, memory));
  return Launch(to, "SumTargetLoss", SumTargetRowsKernel, 1, kBlockThreads,
                rows, outputs, memory);
}

}  // namespace muster
