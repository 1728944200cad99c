#include <cstring>

#include "worker/backend/cuda/cast_kernel.h"
#include "worker/backend/cuda/kernel_grid.cuh"

namespace muster {
namespace {

__device__ uint16_t Bf16Of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  // A carry out of the mantissa would make an infinity of some NaNs.
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  if (is_nan) return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  const uint32_t last_kept_bit = (bits >> 16) & 1u;
  return static_cast<uint16_t>((bits + 0x7FFFu + last_kept_bit) >> 16);
}

__device__ float FloatOf(uint16_t bf16) {
  const uint32_t bits = static_cast<uint32_t>(bf16) << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

__global__ void CastToBf16Kernel(const float* src, uint16_t* dst,
                                 int64_t elements) {
  for (int64_t i = GridIndex(); i < elements; i += GridSize()) {
    dst[i] = Bf16Of(src[i]);
  }
}

__global__ void CastFromBf16Kernel(const uint16_t* src, float* dst,
                                   int64_t elements) {
  for (int64_t i = GridIndex(); i < elements; i += GridSize()) {
    dst[i] = FloatOf(src[i]);
  }
}

}  // namespace

absl::Status CastToBf16(const KernelStream& to, const float* src, uint16_t* dst,
                        int64_t elements) {
  return Launch(to, "CastToBf16", CastToBf16Kernel, BlocksFor(elements),
                kBlockThreads, src, dst, elements);
}

absl::Status CastFromBf16(const KernelStream& to, const uint16_t* src,
                          float* dst, int64_t elements) {
  return Launch(to, "CastFromBf16", CastFromBf16Kernel, BlocksFor(elements),
                kBlockThreads, src, dst, elements);
}

}  // namespace muster
