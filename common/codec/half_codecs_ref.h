#ifndef COMMON_CODEC_HALF_CODECS_REF_H_
#define COMMON_CODEC_HALF_CODECS_REF_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace muster {

// The reference twins of half_codecs.cc. bfloat16 is the upper half of a
// float32 (sign, 8 bits of exponent, 7 of fraction). Rounding is to nearest,
// ties to even, as in IEEE 754 section 4.3.1, except that a finite value stays
// finite: what would round to infinity becomes the largest value. NaN becomes a
// quiet one.
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

// IEEE 754 binary16 (sign, 5 bits of exponent,
// 10 of fraction). Rounding is to nearest, ties to even, also below the normal
// range, whose smallest values are multiples of 2^-24; except that a finite
// value stays finite: what is too large becomes the largest value. NaN becomes
// a quiet one.
inline uint16_t Fp16Ref(float value) {
  constexpr double kLargest = 65504;
  constexpr double kLeastNormal = 0x1p-14;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = (bits >> 16) & 0x8000u;
  if (std::isnan(value)) {
    return static_cast<uint16_t>(sign | 0x7e00u | ((bits >> 13) & 0x3ffu));
  }
  if (std::isinf(value)) return static_cast<uint16_t>(sign | 0x7c00u);
  // In double every product below is exact.
  const double magnitude = std::abs(static_cast<double>(value));
  const int exponent =
      magnitude < kLeastNormal ? -14 : std::min(std::ilogb(magnitude), 16);
  const double unit = std::ldexp(1.0, exponent - 10);
  const double rounded =
      std::min(std::nearbyint(magnitude / unit) * unit, kLargest);
  if (rounded < kLeastNormal) {
    return static_cast<uint16_t>(sign |
                                 static_cast<uint32_t>(rounded * 0x1p24));
  }
  const int binade = std::ilogb(rounded);
  const auto fraction =
      static_cast<uint32_t>(std::ldexp(rounded, 10 - binade)) - 1024u;
  return static_cast<uint16_t>(
      sign | (static_cast<uint32_t>(binade + 15) << 10) | fraction);
}

inline float FloatOfFp16Ref(uint16_t encoded) {
  const uint32_t exponent = (encoded >> 10) & 0x1fu;
  const uint32_t fraction = encoded & 0x3ffu;
  if (exponent == 0x1fu) {
    const uint32_t bits = (static_cast<uint32_t>(encoded & 0x8000u) << 16) |
                          0x7f800000u | (fraction << 13);
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  const double magnitude =
      exponent == 0
          ? std::ldexp(fraction, -24)
          : std::ldexp(1024.0 + fraction, static_cast<int>(exponent) - 25);
  return static_cast<float>((encoded & 0x8000u) != 0 ? -magnitude : magnitude);
}

}  // namespace muster

#endif  // COMMON_CODEC_HALF_CODECS_REF_H_
