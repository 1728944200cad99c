#include "common/checkpoint/float_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr int64_t kPieceBytes = 1 << 20;

template <typename T>
T Load(const char* src) {
  T value;
  std::memcpy(&value, src, sizeof(value));
  return value;
}

// IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits.
float FromHalf(uint16_t bits) {
  const float sign = (bits & 0x8000u) != 0 ? -1.0f : 1.0f;
  const int exponent = (bits >> 10) & 0x1f;
  const auto fraction = static_cast<float>(bits & 0x3ffu);
  if (exponent == 0x1f) {
    return fraction == 0 ? sign * HUGE_VALF : std::nanf("");
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

// The upper half of a float32.
float FromBfloat(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

using Convert = float (*)(const char* src);

// Null for a dtype that is no float.
Convert ConverterOf(absl::string_view format_dtype) {
  if (format_dtype == "F32") {
    return [](const char* src) { return Load<float>(src); };
  }
  if (format_dtype == "F64") {
    return
        [](const char* src) { return static_cast<float>(Load<double>(src)); };
  }
  if (format_dtype == "F16") {
    return [](const char* src) { return FromHalf(Load<uint16_t>(src)); };
  }
  if (format_dtype == "BF16") {
    return [](const char* src) { return FromBfloat(Load<uint16_t>(src)); };
  }
  return nullptr;
}

}  // namespace

bool IsFloatDtype(absl::string_view format_dtype) {
  return ConverterOf(format_dtype) != nullptr;
}

absl::Status ReadFloats(const SafetensorsReader& reader, absl::string_view name,
                        absl::Span<float> dst) {
  ASSIGN_OR_RETURN(const SafetensorsEntry* const entry, reader.Find(name));
  const auto elements = static_cast<int64_t>(dst.size());
  const Convert convert = ConverterOf(entry->format_dtype);
  if (convert == nullptr || entry->shape.num_elements() != elements) {
    return absl::InvalidArgumentError(
        absl::StrCat("read tensor '", absl::CHexEscape(name), "' as ", elements,
                     " float32, it is ", entry->format_dtype, " of shape ",
                     entry->shape.ToString()));
  }
  const int64_t size = FormatDtypeBytes(entry->format_dtype);
  const int64_t longest = kPieceBytes / size;
  std::string piece;
  for (int64_t offset = 0; offset < elements; offset += longest) {
    const int64_t count = std::min(longest, elements - offset);
    piece.resize(static_cast<size_t>(count * size));
    RETURN_IF_ERROR(reader.Read(name, offset, count, piece.data()));
    for (int64_t i = 0; i < count; ++i) {
      const float value = convert(piece.data() + i * size);
      dst[static_cast<size_t>(offset + i)] = value;
      if (std::isfinite(value)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor '", absl::CHexEscape(name), "': element ", offset + i, " is ",
          value, " as float32; all values must be finite"));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
