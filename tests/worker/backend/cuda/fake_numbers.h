// Numbers as tensor cores take them, written from their formats alone.
#ifndef TESTS_WORKER_BACKEND_CUDA_FAKE_NUMBERS_H_
#define TESTS_WORKER_BACKEND_CUDA_FAKE_NUMBERS_H_

#include <cstdint>
#include <cstring>

namespace muster {

// float32 without its lowest `bits` bits of mantissa, to nearest, ties to even;
// infinity and NaN stay.
inline float WithoutLowBits(float value, int bits) {
  uint32_t pattern;
  std::memcpy(&pattern, &value, sizeof(pattern));
  constexpr uint32_t kExponent = 0x7F800000u;
  const uint32_t mask = (1u << bits) - 1;
  if ((pattern & kExponent) == kExponent) return value;
  pattern += (mask >> 1) + ((pattern >> bits) & 1u);
  pattern &= ~mask;
  std::memcpy(&value, &pattern, sizeof(value));
  return value;
}

// 8 bits of exponent, 10 of mantissa.
inline float RoundToTf32(float value) { return WithoutLowBits(value, 13); }

// bf16 is the upper half of a float32.
inline float FromBf16(uint16_t bf16) {
  const uint32_t pattern = static_cast<uint32_t>(bf16) << 16;
  float value;
  std::memcpy(&value, &pattern, sizeof(value));
  return value;
}
inline uint16_t ToBf16(float value) {
  // A NaN whose mantissa is in the lower half alone would become infinity.
  if (value != value) return 0x7FC0;
  const float rounded = WithoutLowBits(value, 16);
  uint32_t pattern;
  std::memcpy(&pattern, &rounded, sizeof(pattern));
  return static_cast<uint16_t>(pattern >> 16);
}

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_FAKE_NUMBERS_H_
