#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "worker/backend/cuda/elementwise_kernel.h"
#include "worker/backend/cuda/kernel_grid.cuh"

namespace muster {
namespace {

// `slope`: kLeakyRelu's.
__device__ float Activation(ActivationKind kind, float slope, float src) {
  switch (kind) {
    case ActivationKind::kRelu:
      return src < 0 ? 0 : src;  // NaN stays
    case ActivationKind::kSigmoid:
      return 1 / (1 + expf(-src));
    case ActivationKind::kTanh:
      return tanhf(src);
    case ActivationKind::kLeakyRelu:
      return src > 0 ? src : slope * src;
  }
  return 0;
}

__device__ float Derivative(ActivationKind kind, float slope, float dst) {
  switch (kind) {
    case ActivationKind::kRelu:
      return dst > 0 ? 1 : 0;
    case ActivationKind::kSigmoid:
      return dst * (1 - dst);
    case ActivationKind::kTanh:
      return 1 - dst * dst;
    case ActivationKind::kLeakyRelu:
      return dst > 0 ? 1 : slope;
  }
  return 0;
}

__global__ void ActivationForwardKernel(ActivationKind kind, float slope,
                                        const float* src, float* dst,
                                        int64_t elements) {
  for (int64_t i = GridIndex(); i < elements; i += GridSize()) {
    dst[i] = Activation(kind, slope, src[i]);
  }
}

__global__ void ActivationBackwardKernel(ActivationKind kind, float slope,
                                         const float* dst,
                                         const float* diff_dst, float* diff_src,
                                         int64_t elements) {
  for (int64_t i = GridIndex(); i < elements; i += GridSize()) {
    diff_src[i] = diff_dst[i] * Derivative(kind, slope, dst[i]);
  }
}

// The channel goes along with the element: a division would take longer than
// the memory.
__global__ void AddBiasKernel(const float* bias, int64_t channels, bool relu,
                              float* dst, int64_t elements) {
  const int64_t step = GridSize() % channels;
  int64_t channel = GridIndex() % channels;
  for (int64_t i = GridIndex(); i < elements; i += GridSize()) {
    const float sum = dst[i] + bias[channel];
    dst[i] = relu && sum < 0 ? 0 : sum;  // NaN stays
    channel += step;
    if (channel >= channels) channel -= channels;
  }
}

// The most sources of one launch: an argument of a kernel is a value.
constexpr int kMostSources = 8;
struct Sources {
  const float* at[kMostSources];
  int count;
};

__global__ void DividedSumKernel(Sources srcs, float divisor, float* dst,
                                 int64_t elements) {
  for (int64_t i = GridIndex(); i < elements; i += GridSize()) {
    float sum = srcs.at[0][i];
    // A bound that is known when compiled keeps the pointers out of the stack.
    for (int k = 1; k < kMostSources; ++k) {
      if (k < srcs.count) sum += srcs.at[k][i];
    }
    dst[i] = sum / divisor;
  }
}

}  // namespace

absl::Status ActivationForward(const KernelStream& to,
                               const ActivationDesc& desc, const float* src,
                               float* dst, int64_t elements) {
  return Launch(to, "ActivationForward", ActivationForwardKernel,
                BlocksFor(elements), kBlockThreads, desc.kind,
                static_cast<float>(desc.slope), src, dst, elements);
}

absl::Status ActivationBackward(const KernelStream& to,
                                const ActivationDesc& desc, const float* dst,
                                const float* diff_dst, float* diff_src,
                                int64_t elements) {
  return Launch(to, "ActivationBackward", ActivationBackwardKernel,
                BlocksFor(elements), kBlockThreads, desc.kind,
                static_cast<float>(desc.slope), dst, diff_dst, diff_src,
                elements);
}

absl::Status AddBias(const KernelStream& to, const float* bias,
                     int64_t channels, bool relu, float* dst, int64_t rows) {
  const int64_t elements = rows * channels;
  return Launch(to, "AddBias", AddBiasKernel, BlocksFor(elements),
                kBlockThreads, bias, channels, relu, dst, elements);
}

absl::Status DividedSum(const KernelStream& to,
                        absl::Span<const float* const> srcs, float divisor,
                        float* dst, int64_t elements) {
  Sources sources = {{srcs[0]}, 1};
  size_t next = 1;
  do {
    while (next < srcs.size() && sources.count < kMostSources) {
      sources.at[sources.count++] = srcs[next++];
    }
    const bool is_last = next == srcs.size();
    RETURN_IF_ERROR(Launch(to, "DividedSum", DividedSumKernel,
                           BlocksFor(elements), kBlockThreads, sources,
                           is_last ? divisor : 1.0f, dst, elements));
    // The next launch goes on from the sum so far.
    sources = {{dst}, 1};
  } while (next < srcs.size());
  return absl::OkStatus();
}

}  // namespace muster
