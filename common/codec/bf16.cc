// bfloat16: half of the bytes, the range of float32, 8 significant bits.
// Rounding as in bf16_ref.h, vectorized.
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "common/codec/codec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/codec/bf16.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h: compiled once for each instruction set.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Bits = hn::ScalableTag<uint32_t>;
using SignedBits = hn::RebindToSigned<Bits>;
using Halves = hn::Rebind<uint16_t, Bits>;

// One vector; both may lie anywhere in memory.
HWY_ATTR void EncodeVector(const float* values, uint16_t* encoded) {
  const Bits d;
  const auto bits = hn::LoadU(d, reinterpret_cast<const uint32_t*>(values));
  const auto infinity = hn::Set(d, 0x7f800000u);
  const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffffu));
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000u));
  const auto upper = hn::ShiftRight<16>(magnitude);
  const auto odd = hn::And(upper, hn::Set(d, 1u));
  const auto rounded =
      hn::ShiftRight<16>(hn::Add(magnitude, hn::Add(odd, hn::Set(d, 0x7fffu))));
  const auto finite = hn::Min(rounded, hn::Set(d, 0x7f7fu));
  const auto quiet = hn::Or(upper, hn::Set(d, 0x40u));
  const auto special =
      hn::IfThenElse(hn::Gt(magnitude, infinity), quiet, upper);
  const auto result = hn::Or(
      sign, hn::IfThenElse(hn::Lt(magnitude, infinity), finite, special));
  hn::StoreU(hn::DemoteTo(Halves(), hn::BitCast(SignedBits(), result)),
             Halves(), encoded);
}

HWY_ATTR void DecodeVector(const uint16_t* encoded, float* values) {
  const Bits d;
  const auto halves = hn::LoadU(Halves(), encoded);
  hn::StoreU(hn::ShiftLeft<16>(hn::PromoteTo(d, halves)), d,
             reinterpret_cast<uint32_t*>(values));
}

void EncodeBf16(const float* values, int64_t n, char* encoded) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Bits()));
  auto* out = reinterpret_cast<uint16_t*>(encoded);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) EncodeVector(values + i, out + i);
  if (i == n) return;
  float tail[hn::MaxLanes(Bits())] = {};
  uint16_t tail_out[hn::MaxLanes(Bits())];
  std::memcpy(tail, values + i, static_cast<size_t>(n - i) * sizeof(float));
  EncodeVector(tail, tail_out);
  std::memcpy(encoded + i * 2, tail_out, static_cast<size_t>(n - i) * 2);
}

void DecodeBf16(const char* encoded, int64_t n, float* values) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Bits()));
  const auto* in = reinterpret_cast<const uint16_t*>(encoded);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) DecodeVector(in + i, values + i);
  if (i == n) return;
  uint16_t tail[hn::MaxLanes(Bits())] = {};
  float tail_out[hn::MaxLanes(Bits())];
  std::memcpy(tail, encoded + i * 2, static_cast<size_t>(n - i) * 2);
  DecodeVector(tail, tail_out);
  std::memcpy(values + i, tail_out, static_cast<size_t>(n - i) * sizeof(float));
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {
namespace {

HWY_EXPORT(EncodeBf16);
HWY_EXPORT(DecodeBf16);

class Bf16 : public Codec {
 public:
  absl::string_view name() const override { return "bf16"; }
  int64_t bytes_per_value() const override { return 2; }
  // Half of the last of 8 significant bits.
  double relative_error() const override { return 0x1p-8; }
  // Half of the spacing of the smallest values.
  double absolute_error() const override { return 0x1p-134; }

  void Encode(const float* values, int64_t n, char* encoded) const override {
    HWY_DYNAMIC_DISPATCH(EncodeBf16)(values, n, encoded);
  }
  void Decode(const char* encoded, int64_t n, float* values) const override {
    HWY_DYNAMIC_DISPATCH(DecodeBf16)(encoded, n, values);
  }
};

[[maybe_unused]] const bool kRegistered =
    CodecRegistry::Register("bf16", new Bf16());

}  // namespace
}  // namespace muster
#endif  // HWY_ONCE
