#include "common/base/status_macros.h"
#include "worker/backend/cuda/channel_parts.cuh"
#include "worker/backend/cuda/kernel_grid.cuh"
#include "worker/backend/cuda/l2_penalty_kernel.h"

namespace muster {
namespace {

// All weights are one channel.
ChannelShape ShapeOf(int64_t elements) { return {elements, 1, 1}; }

__global__ void SumSquaresKernel(ChannelShape shape, int64_t parts, float scale,
                                 const float* weights, float* diff_weights,
                                 double* sums) {
  for (int64_t i = GridIndex(); i < parts; i += GridSize()) {
    double sum = 0;
    ForEachOfPart(shape, parts, PartAt(shape, parts, i), [&](int64_t k) {
      const double weight = weights[k];
      sum += weight * weight;
      if (diff_weights != nullptr) diff_weights[k] += scale * weights[k];
    });
    sums[i] = sum;
  }
}

__global__ void AddToLossKernel(double scale, const double* sum, double* loss) {
  *loss += scale * *sum / 2;
}

}  // namespace

// The sums of the parts, and their sum.
int64_t L2PenaltyScratch(int64_t elements) {
  return PartsOf(ShapeOf(elements)) + 1;
}

absl::Status AddL2Penalty(const KernelStream& to, double scale,
                          const float* weights, int64_t elements, double* loss,
                          float* diff_weights, double* scratch) {
  const ChannelShape shape = ShapeOf(elements);
  const int64_t parts = PartsOf(shape);
  double* const sum = scratch + parts;
  RETURN_IF_ERROR(Launch(to, "SumSquares", SumSquaresKernel, BlocksFor(parts),
                         kBlockThreads, shape, parts, scale, weights,
                         diff_weights, scratch));
  RETURN_IF_ERROR(SumChannels(to, ShapeOf(parts), scratch, sum, scratch));
  return Launch(to, "AddToLoss", AddToLossKernel, 1, 1, scale, sum, loss);
}

}  // namespace muster
