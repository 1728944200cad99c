#ifndef COMMON_CODEC_BF16_REF_H_
#define COMMON_CODEC_BF16_REF_H_

#include <cstdint>
#include <cstring>

namespace muster {

// The reference twin of bf16.cc: bfloat16 is the upper half of a float32 (sign,
// 8 bits of exponent, 7 of fraction). Rounding is to nearest, ties to even, as
// in IEEE 754 section 4.3.1, except that a finite value stays finite: what
// would round to infinity becomes the largest value. NaN becomes a quiet one.
inline uint16_t Bf16Ref(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  constexpr uint32_t kInfinity = 0x7f800000u;
  constexpr uint32_t kLargest = 0x7f7fu;
  uint32_t upper;
  if (magnitude > kInfinity) {
    upper = (magnitude >> 16) | 0x40u;
  } else if (magnitude == kInfinity) {
    upper = kInfinity >> 16;
  } else {
    upper = (magnitude + 0x7fffu + ((magnitude >> 16) & 1u)) >> 16;
    if (upper > kLargest) upper = kLargest;
  }
  return static_cast<uint16_t>(sign | upper);
}

inline float FloatOfBf16Ref(uint16_t encoded) {
  const uint32_t bits = static_cast<uint32_t>(encoded) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace muster

#endif  // COMMON_CODEC_BF16_REF_H_
