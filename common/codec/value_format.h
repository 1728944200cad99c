#ifndef COMMON_CODEC_VALUE_FORMAT_H_
#define COMMON_CODEC_VALUE_FORMAT_H_

#include <cstdint>

namespace muster {

// How each float32 value of an array lies in memory. Loops that decode in
// registers (value_load-inl.h) know all of them.
enum class ValueFormat { kFloat32, kBf16, kFp16 };

// Each format takes as many bytes for every value.
inline constexpr int64_t BytesPerValue(ValueFormat format) {
  return format == ValueFormat::kFloat32 ? 4 : 2;
}

// An array of them, of another's memory. kFloat32 is aligned as a float, the
// others may lie at any address.
struct EncodedValues {
  ValueFormat format = ValueFormat::kFloat32;
  const char* data = nullptr;

  // Those from the n-th on.
  EncodedValues From(int64_t n) const {
    return {format, data + n * BytesPerValue(format)};
  }
};

inline EncodedValues AsEncoded(const float* values) {
  return {ValueFormat::kFloat32, reinterpret_cast<const char*>(values)};
}

}  // namespace muster

#endif  // COMMON_CODEC_VALUE_FORMAT_H_
