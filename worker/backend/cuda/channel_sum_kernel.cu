#include "common/base/status_macros.h"
#include "worker/backend/cuda/channel_parts.cuh"
#include "worker/backend/cuda/channel_sum_kernel.h"
#include "worker/backend/cuda/kernel_grid.cuh"

namespace muster {
namespace {

// Few enough values for one thread, which then needs no second launch.
constexpr int64_t kMostValuesAtOnce = 128;
// Values of a part otherwise: three launches for a million. Neither number is
// measured.
constexpr int64_t kValuesOfPart = 32;

template <typename T>
__global__ void SumPartsKernel(ChannelShape shape, int64_t parts, const T* src,
                               T* sums) {
  const int64_t threads = parts * shape.channels;
  for (int64_t i = GridIndex(); i < threads; i += GridSize()) {
    const ChannelPart at = PartAt(shape, parts, i);
    T sum = 0;
    ForEachOfPart(shape, parts, at, [&](int64_t value) { sum += src[value]; });
    sums[at.part * shape.channels + at.channel] = sum;
  }
}

template <typename T>
absl::Status Sum(const KernelStream& to, ChannelShape shape, const T* src,
                 T* dst, T* scratch) {
  while (true) {
    const int64_t parts = PartsOf(shape);
    T* const sums = parts == 1 ? dst : scratch;
    const int64_t threads = parts * shape.channels;
    RETURN_IF_ERROR(Launch(to, "SumChannels", SumPartsKernel<T>,
                           BlocksFor(threads), kBlockThreads, shape, parts, src,
                           sums));
    if (parts == 1) return absl::OkStatus();
    // From now on a thread writes where it alone has read: at its first value.
    src = sums;
    shape = {parts, shape.channels, 1};
  }
}

}  // namespace

int64_t PartsOf(const ChannelShape& shape) {
  const int64_t values = shape.outer * shape.inner;
  if (values <= kMostValuesAtOnce) return 1;
  return (values + kValuesOfPart - 1) / kValuesOfPart;
}

int64_t ChannelSumScratch(const ChannelShape& shape) {
  const int64_t parts = PartsOf(shape);
  return parts == 1 ? 0 : parts * shape.channels;
}

absl::Status SumChannels(const KernelStream& to, const ChannelShape& shape,
                         const float* src, float* dst, float* scratch) {
  return Sum(to, shape, src, dst, scratch);
}

absl::Status SumChannels(const KernelStream& to, const ChannelShape& shape,
                         const double* src, double* dst, double* scratch) {
  return Sum(to, shape, src, dst, scratch);
}

}  // namespace muster
