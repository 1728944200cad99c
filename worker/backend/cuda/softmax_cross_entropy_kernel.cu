#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/status_macros.h"
#include "worker/backend/cuda/kernel_grid.cuh"
#include "worker/backend/cuda/softmax_cross_entropy_kernel.h"

namespace muster {
namespace {

// Threads of a block, which takes one row at a time.
constexpr int kRowThreads = 32;

// A value and where it stands; the first of equals.
struct Largest {
  float value;
  int64_t index;

  __device__ void Meet(const Largest& other) {
    const bool is_later = other.index > index;
    if (other.value < value || (other.value == value && is_later)) return;
    *this = other;
  }
};

// The two reductions of a row run in turn, each with memory of its own: the
// barrier of one lets the other's memory be used again.

// The largest of a row, for every thread of the block.
__device__ Largest LargestOfRow(const float* row, int64_t classes) {
  __shared__ Largest shared[kRowThreads];
  Largest largest = {-INFINITY, classes};
  for (int64_t k = threadIdx.x; k < classes; k += kRowThreads) {
    largest.Meet({row[k], k});
  }
  shared[threadIdx.x] = largest;
  __syncthreads();
  for (int i = 0; i < kRowThreads; ++i) largest.Meet(shared[i]);
  return largest;
}

// The sum of exp(row - largest), likewise.
__device__ float SumOfExponentials(const float* row, int64_t classes,
                                   float largest) {
  __shared__ float shared[kRowThreads];
  float sum = 0;
  for (int64_t k = threadIdx.x; k < classes; k += kRowThreads) {
    sum += expf(row[k] - largest);
  }
  shared[threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < kRowThreads; ++i) sum += shared[i];
  return sum;
}

__device__ void WriteGradient(const float* row, int64_t classes, int64_t rows,
                              int32_t label, float smoothing, float weight,
                              float largest, float sum, float* diff) {
  const float share = smoothing / static_cast<float>(classes);
  for (int64_t k = threadIdx.x; k < classes; k += kRowThreads) {
    const float softmax = expf(row[k] - largest) / sum;
    const float target = share + (k == label ? 1.0f - smoothing : 0.0f);
    diff[k] = weight * ((softmax - target) / static_cast<float>(rows));
  }
}

// By one thread.
__device__ bool IsFinite(const float* row, int64_t classes) {
  for (int64_t k = 0; k < classes; ++k) {
    if (!isfinite(row[k])) return false;
  }
  return true;
}

// The part of a row's loss that smoothing adds, by one thread.
__device__ double SmoothingLoss(const float* row, int64_t classes,
                                int32_t label, float smoothing) {
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += row[label] - row[k];
  return smoothing / static_cast<float>(classes) * sum;
}

__global__ void RowsKernel(int64_t batch, int64_t classes, int64_t rows,
                           SoftmaxCrossEntropyMemory memory) {
  for (int64_t n = blockIdx.x; n < rows; n += gridDim.x) {
    const float* const row = memory.src + n * classes;
    const int32_t label = memory.labels[n];
    const float weight = memory.weights == nullptr ? 1.0f : memory.weights[n];
    const bool is_label = label >= 0 && label < classes;
    const Largest largest = LargestOfRow(row, classes);
    const float sum = SumOfExponentials(row, classes, largest.value);
    if (threadIdx.x == 0) {
      memory.row_losses[n] =
          is_label ? logf(sum) - (row[label] - largest.value) : NAN;
      const bool hits = largest.index == label && IsFinite(row, classes);
      memory.row_hits[n] = hits ? 1 : 0;
      if (is_label && memory.label_smoothing > 0) {
        memory.row_losses[n] +=
            SmoothingLoss(row, classes, label, memory.label_smoothing);
      }
      memory.row_losses[n] *= weight;
    }
    if (memory.diff_src != nullptr) {
      WriteGradient(row, classes, rows, label, memory.label_smoothing, weight,
                    largest.value, sum, memory.diff_src + n * classes);
    }
  }
  if (memory.diff_src == nullptr) return;
  for (int64_t i = rows * classes + GridIndex(); i < batch * classes;
       i += GridSize()) {
    memory.diff_src[i] = 0;
  }
}

// One block.
__global__ void SumRowsKernel(int64_t rows, SoftmaxCrossEntropyMemory memory) {
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
  *memory.loss = loss / static_cast<double>(rows);
  *memory.correct = correct;
}

}  // namespace

absl::Status SoftmaxCrossEntropy(const KernelStream& to, int64_t batch,
                                 int64_t classes, int64_t rows,
                                 const SoftmaxCrossEntropyMemory& memory) {
  const auto blocks =
      static_cast<unsigned>(std::min<int64_t>(batch, kMostBlocks));
  RETURN_IF_ERROR(Launch(to, "SoftmaxCrossEntropy", RowsKernel, blocks,
                         kRowThreads, batch, classes, rows, memory));
  return Launch(to, "SumLoss", SumRowsKernel, 1, kBlockThreads, rows, memory);
}

}  // namespace muster
