#include <cmath>

#include "common/base/status_macros.h"
#include "worker/backend/cuda/batch_norm_kernel.h"
#include "worker/backend/cuda/channel_parts.cuh"
#include "worker/backend/cuda/elementwise_kernel.h"
#include "worker/backend/cuda/kernel_grid.cuh"

namespace muster {
namespace {

int64_t ValuesOfChannel(const ChannelShape& shape) {
  return shape.outer * shape.inner;
}

int64_t Elements(const ChannelShape& shape) {
  return ValuesOfChannel(shape) * shape.channels;
}

__device__ int64_t ChannelOf(const ChannelShape& shape, int64_t index) {
  return index / shape.inner % shape.channels;
}

// sums [parts, channels] of (src - mean)^2.
__global__ void SumDistancesKernel(ChannelShape shape, int64_t parts,
                                   const float* src, const float* mean,
                                   float* sums) {
  const int64_t threads = parts * shape.channels;
  for (int64_t i = GridIndex(); i < threads; i += GridSize()) {
    const ChannelPart at = PartAt(shape, parts, i);
    const float center = mean[at.channel];
    float sum = 0;
    ForEachOfPart(shape, parts, at, [&](int64_t k) {
      const float distance = src[k] - center;
      sum += distance * distance;
    });
    sums[at.part * shape.channels + at.channel] = sum;
  }
}

// dst = src standardized, times weights plus bias.
__global__ void NormalizeKernel(ChannelShape shape, int64_t elements,
                                float epsilon, BatchNormMemory memory) {
  for (int64_t i = GridIndex(); i < elements; i += GridSize()) {
    const int64_t c = ChannelOf(shape, i);
    const float scale = memory.weights[c] / sqrtf(memory.variance[c] + epsilon);
    memory.dst[i] = (memory.src[i] - memory.mean[c]) * scale + memory.bias[c];
  }
}

// sums [parts, 2, channels] of diff_dst, and of diff_dst times standardized
// src.
__global__ void SumGradientsKernel(ChannelShape shape, int64_t parts,
                                   float epsilon, BatchNormMemory memory,
                                   float* sums) {
  const int64_t threads = parts * shape.channels;
  for (int64_t i = GridIndex(); i < threads; i += GridSize()) {
    const ChannelPart at = PartAt(shape, parts, i);
    const float mean = memory.mean[at.channel];
    const float inverse = 1 / sqrtf(memory.variance[at.channel] + epsilon);
    float sum = 0, dot = 0;
    ForEachOfPart(shape, parts, at, [&](int64_t k) {
      sum += memory.diff_dst[k];
      dot += memory.diff_dst[k] * (memory.src[k] - mean) * inverse;
    });
    sums[at.part * 2 * shape.channels + at.channel] = sum;
    sums[(at.part * 2 + 1) * shape.channels + at.channel] = dot;
  }
}

// diff_src from the sums [2, channels], which become diff_bias and
// diff_weights.
__global__ void DiffSrcKernel(ChannelShape shape, int64_t elements,
                              float epsilon, BatchNormMemory memory,
                              const float* sums) {
  const float size = static_cast<float>(shape.outer * shape.inner);
  for (int64_t i = GridIndex(); i < elements; i += GridSize()) {
    const int64_t c = ChannelOf(shape, i);
    const float sum = sums[c];
    const float dot = sums[shape.channels + c];
    const float inverse = 1 / sqrtf(memory.variance[c] + epsilon);
    const float standardized = (memory.src[i] - memory.mean[c]) * inverse;
    memory.diff_src[i] =
        memory.weights[c] * inverse *
        (memory.diff_dst[i] - sum / size - standardized * dot / size);
    if (i < shape.channels) {
      memory.diff_bias[i] = sums[i];
      memory.diff_weights[i] = sums[shape.channels + i];
    }
  }
}

// mean = sum / values of a channel, where the sum lies.
absl::Status DivideBySize(const KernelStream& to, const ChannelShape& shape,
                          float* sums) {
  const float size = static_cast<float>(ValuesOfChannel(shape));
  return DividedSum(to, {sums}, size, sums, shape.channels);
}

absl::Status Normalize(const KernelStream& to, const ChannelShape& shape,
                       double epsilon, const BatchNormMemory& memory) {
  const int64_t elements = Elements(shape);
  return Launch(to, "Normalize", NormalizeKernel, BlocksFor(elements),
                kBlockThreads, shape, elements, epsilon, memory);
}

}  // namespace

// The sums of the parts, for the mean and then for the variance.
int64_t BatchNormForwardScratch(const ChannelShape& shape) {
  return PartsOf(shape) * shape.channels;
}

// Both sums of the parts, and of all.
int64_t BatchNormBackwardScratch(const ChannelShape& shape) {
  return (PartsOf(shape) + 1) * 2 * shape.channels;
}

absl::Status BatchNormTraining(const KernelStream& to,
                               const ChannelShape& shape, double epsilon,
                               const BatchNormMemory& memory) {
  RETURN_IF_ERROR(
      SumChannels(to, shape, memory.src, memory.mean, memory.scratch));
  RETURN_IF_ERROR(DivideBySize(to, shape, memory.mean));
  const int64_t parts = PartsOf(shape);
  const int64_t threads = parts * shape.channels;
  RETURN_IF_ERROR(Launch(to, "SumDistances", SumDistancesKernel,
                         BlocksFor(threads), kBlockThreads, shape, parts,
                         memory.src, memory.mean, memory.scratch));
  RETURN_IF_ERROR(SumChannels(to, {parts, shape.channels, 1}, memory.scratch,
                              memory.variance, memory.scratch));
  RETURN_IF_ERROR(DivideBySize(to, shape, memory.variance));
  return Normalize(to, shape, epsilon, memory);
}

absl::Status BatchNormInference(const KernelStream& to,
                                const ChannelShape& shape, double epsilon,
                                const BatchNormMemory& memory) {
  return Normalize(to, shape, epsilon, memory);
}

absl::Status BatchNormBackward(const KernelStream& to,
                               const ChannelShape& shape, double epsilon,
                               const BatchNormMemory& memory) {
  const int64_t parts = PartsOf(shape);
  const int64_t columns = 2 * shape.channels;
  float* const sums_of_parts = memory.scratch;
  float* const sums = memory.scratch + parts * columns;
  RETURN_IF_ERROR(Launch(to, "SumGradients", SumGradientsKernel,
                         BlocksFor(parts * shape.channels), kBlockThreads,
                         shape, parts, epsilon, memory, sums_of_parts));
  RETURN_IF_ERROR(
      SumChannels(to, {parts, columns, 1}, sums_of_parts, sums, sums_of_parts));
  const int64_t elements = Elements(shape);
  return Launch(to, "DiffSrc", DiffSrcKernel, BlocksFor(elements),
                kBlockThreads, shape, elements, epsilon, memory, sums);
}

}  // namespace muster
