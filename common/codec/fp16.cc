// IEEE half precision: half of the bytes, 11 significant bits, up to 65504.
// Rounding as in fp16_ref.h, vectorized.
#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/codec/codec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/codec/fp16.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h: they are compiled once for each instruction set.
#include "common/codec/half_loop-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

// Not Highway's own conversion, as Fp16Load says.
void EncodeFp16(const float* values, int64_t n, char* encoded) {
  const BitsTag d;
  const FloatTag f;
  EncodeHalves(values, n, encoded, [&](auto bits) HWY_ATTR {
    const auto infinity = hn::Set(d, 0x7f800000u);
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffffu));
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000u));
    const auto upper = hn::ShiftRight<13>(magnitude);
    const auto odd = hn::And(upper, hn::Set(d, 1u));
    const auto rounded = hn::ShiftRight<13>(
        hn::Add(hn::Sub(magnitude, hn::Set(d, Fp16Load::kExponentOffset)),
                hn::Add(odd, hn::Set(d, 0xfffu))));
    const auto normal = hn::Min(rounded, hn::Set(d, 0x7bffu));
    // The last bit of 0.5f is 2^-24, the unit below the normal range: the adder
    // rounds to it.
    const auto half = hn::Set(d, 0x3f000000u);
    const auto sum = hn::Add(hn::BitCast(f, magnitude), hn::BitCast(f, half));
    const auto small = hn::Sub(hn::BitCast(d, sum), half);
    const auto finite = hn::IfThenElse(
        hn::Lt(magnitude, hn::Set(d, Fp16Load::kLeastNormal)), small, normal);
    const auto nan =
        hn::Or(hn::And(upper, hn::Set(d, 0x3ffu)), hn::Set(d, 0x7e00u));
    const auto special =
        hn::IfThenElse(hn::Gt(magnitude, infinity), nan, hn::Set(d, 0x7c00u));
    return hn::Or(sign,
                  hn::IfThenElse(hn::Lt(magnitude, infinity), finite, special));
  });
}

void DecodeFp16(const char* encoded, int64_t n, float* values) {
  DecodeHalves<Fp16Load>(encoded, n, values);
}

int64_t FirstNonFiniteFp16(const char* encoded, int64_t n) {
  return FirstNonFiniteHalf(encoded, n, /*exponent_unit=*/0x0400);
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {
namespace {

HWY_EXPORT(EncodeFp16);
HWY_EXPORT(DecodeFp16);
HWY_EXPORT(FirstNonFiniteFp16);

class Fp16 : public Codec {
 public:
  absl::string_view name() const override { return "fp16"; }
  ValueFormat format() const override { return ValueFormat::kFp16; }
  // Half of the last of 11 significant bits.
  double relative_error() const override { return 0x1p-11; }
  // Half of the spacing of the smallest values.
  double absolute_error() const override { return 0x1p-25; }
  double largest() const override { return 65504; }

  void Encode(const float* values, int64_t n, char* encoded) const override {
    HWY_DYNAMIC_DISPATCH(EncodeFp16)(values, n, encoded);
  }
  void Decode(const char* encoded, int64_t n, float* values) const override {
    HWY_DYNAMIC_DISPATCH(DecodeFp16)(encoded, n, values);
  }
  int64_t FirstNonFinite(const char* encoded, int64_t n) const override {
    return HWY_DYNAMIC_DISPATCH(FirstNonFiniteFp16)(encoded, n);
  }
};

[[maybe_unused]] const bool kRegistered =
    CodecRegistry::Register("fp16", new Fp16());

}  // namespace
}  // namespace muster
#endif  // HWY_ONCE
