// bfloat16: half of the bytes, the range of float32, 8 significant bits.
// Rounding as in bf16_ref.h, vectorized.
#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/codec/codec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/codec/bf16.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h: they are compiled once for each instruction set.
#include "common/codec/half_loop-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

void EncodeBf16(const float* values, int64_t n, char* encoded) {
  const BitsTag d;
  EncodeHalves(values, n, encoded, [&](auto bits) HWY_ATTR {
    const auto infinity = hn::Set(d, 0x7f800000u);
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffffu));
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000u));
    const auto upper = hn::ShiftRight<16>(magnitude);
    const auto odd = hn::And(upper, hn::Set(d, 1u));
    const auto rounded = hn::ShiftRight<16>(
        hn::Add(magnitude, hn::Add(odd, hn::Set(d, 0x7fffu))));
    const auto finite = hn::Min(rounded, hn::Set(d, 0x7f7fu));
    const auto quiet = hn::Or(upper, hn::Set(d, 0x40u));
    const auto special =
        hn::IfThenElse(hn::Gt(magnitude, infinity), quiet, upper);
    return hn::Or(sign,
                  hn::IfThenElse(hn::Lt(magnitude, infinity), finite, special));
  });
}

void DecodeBf16(const char* encoded, int64_t n, float* values) {
  DecodeHalves<Bf16Load>(encoded, n, values);
}

int64_t FirstNonFiniteBf16(const char* encoded, int64_t n) {
  return FirstNonFiniteHalf(encoded, n, /*exponent_unit=*/0x0080);
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {
namespace {

HWY_EXPORT(EncodeBf16);
HWY_EXPORT(DecodeBf16);
HWY_EXPORT(FirstNonFiniteBf16);

class Bf16 : public Codec {
 public:
  absl::string_view name() const override { return "bf16"; }
  ValueFormat format() const override { return ValueFormat::kBf16; }
  // Half of the last of 8 significant bits.
  double relative_error() const override { return 0x1p-8; }
  // Half of the spacing of the smallest values.
  double absolute_error() const override { return 0x1p-134; }
  double largest() const override { return 0x1.fep127; }

  void Encode(const float* values, int64_t n, char* encoded) const override {
    HWY_DYNAMIC_DISPATCH(EncodeBf16)(values, n, encoded);
  }
  void Decode(const char* encoded, int64_t n, float* values) const override {
    HWY_DYNAMIC_DISPATCH(DecodeBf16)(encoded, n, values);
  }
  int64_t FirstNonFinite(const char* encoded, int64_t n) const override {
    return HWY_DYNAMIC_DISPATCH(FirstNonFiniteBf16)(encoded, n);
  }
};

[[maybe_unused]] const bool kRegistered =
    CodecRegistry::Register("bf16", new Bf16());

}  // namespace
}  // namespace muster
#endif  // HWY_ONCE
