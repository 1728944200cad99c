// The codecs with 16 bits a value, rounded as in half_codecs_ref.h, vectorized:
// bfloat16 has the range of float32 and 8 significant bits; IEEE half precision
// has 11, up to 65504.
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "common/codec/codec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/codec/half_codecs.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h: they are compiled once for each instruction set.
#include "common/codec/value_load-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

struct Bf16 {
  using Load = Bf16Load;

  static HWY_ATTR HWY_INLINE hn::Vec<BitsTag> Encode(hn::Vec<BitsTag> bits) {
    const BitsTag d;
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
  }
};

// Not Highway's own conversion, as Fp16Load says.
struct Fp16 {
  using Load = Fp16Load;

  static HWY_ATTR HWY_INLINE hn::Vec<BitsTag> Encode(hn::Vec<BitsTag> bits) {
    const BitsTag d;
    const FloatTag f;
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
  }
};

// `Half` encodes vectors of 32-bit lanes, from the bits of float32 values to
// encoded ones in the lower half, and has a Load (value_load-inl.h). A tail
// shorter than a vector goes through a buffer and the same arithmetic, so a
// value's bits do not depend on its position. Both sides may lie anywhere in
// memory.
template <typename Half>
HWY_ATTR void EncodeHalves(const float* values, int64_t n, char* encoded) {
  const BitsTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto encode_at = [&](const float* in, uint16_t* out) HWY_ATTR {
    const auto bits = hn::LoadU(d, reinterpret_cast<const uint32_t*>(in));
    const auto halves =
        hn::BitCast(hn::RebindToSigned<BitsTag>(), Half::Encode(bits));
    hn::StoreU(hn::DemoteTo(HalfTag(), halves), HalfTag(), out);
  };
  auto* out = reinterpret_cast<uint16_t*>(encoded);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) encode_at(values + i, out + i);
  if (i == n) return;
  float tail[hn::MaxLanes(d)] = {};
  uint16_t tail_out[hn::MaxLanes(d)];
  std::memcpy(tail, values + i, static_cast<size_t>(n - i) * sizeof(float));
  encode_at(tail, tail_out);
  std::memcpy(encoded + i * 2, tail_out, static_cast<size_t>(n - i) * 2);
}

template <typename Half>
HWY_ATTR void DecodeHalves(const char* encoded, int64_t n, float* values) {
  const FloatTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* in = reinterpret_cast<const uint16_t*>(encoded);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(Half::Load::At(in + i), d, values + i);
  }
  if (i == n) return;
  uint16_t tail[hn::MaxLanes(d)] = {};
  float tail_out[hn::MaxLanes(d)];
  std::memcpy(tail, encoded + i * 2, static_cast<size_t>(n - i) * 2);
  hn::StoreU(Half::Load::At(tail), d, tail_out);
  std::memcpy(values + i, tail_out, static_cast<size_t>(n - i) * sizeof(float));
}

// The index of the first value that is NaN or infinite, or -1. `exponent_unit`
// is the last bit of the exponent: where all its bits are set, adding one
// carries into the sign.
int64_t FirstNonFinite(ValueFormat format, const char* encoded, int64_t n) {
  const uint16_t exponent_unit = format == ValueFormat::kBf16 ? 0x0080 : 0x0400;
  const hn::ScalableTag<uint16_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* in = reinterpret_cast<const uint16_t*>(encoded);
  const auto unit = hn::Set(d, exponent_unit);
  const auto magnitude = hn::Set(d, uint16_t{0x7fff});
  const auto sign = hn::Set(d, uint16_t{0x8000});
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto first = hn::Add(hn::And(hn::LoadU(d, in + i), magnitude), unit);
    const auto second =
        hn::Add(hn::And(hn::LoadU(d, in + i + lanes), magnitude), unit);
    const auto found = hn::And(hn::Or(first, second), sign);
    if (!hn::AllTrue(d, hn::Eq(found, hn::Zero(d)))) break;
  }
  for (; i < n; ++i) {
    uint16_t half;
    std::memcpy(&half, encoded + i * 2, sizeof(half));
    if ((((half & 0x7fffu) + exponent_unit) & 0x8000u) != 0) return i;
  }
  return -1;
}

void Encode(ValueFormat format, const float* values, int64_t n, char* encoded) {
  const auto encode =
      format == ValueFormat::kBf16 ? &EncodeHalves<Bf16> : &EncodeHalves<Fp16>;
  encode(values, n, encoded);
}

void Decode(ValueFormat format, const char* encoded, int64_t n, float* values) {
  const auto decode =
      format == ValueFormat::kBf16 ? &DecodeHalves<Bf16> : &DecodeHalves<Fp16>;
  decode(encoded, n, values);
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {
namespace {

HWY_EXPORT(Encode);
HWY_EXPORT(Decode);
HWY_EXPORT(FirstNonFinite);

class HalfCodec : public Codec {
 public:
  struct Numbers {
    double relative_error;
    double absolute_error;
    double largest;
  };

  HalfCodec(absl::string_view name, ValueFormat format, const Numbers& numbers)
      : name_(name), format_(format), numbers_(numbers) {}

  absl::string_view name() const override { return name_; }
  ValueFormat format() const override { return format_; }
  double relative_error() const override { return numbers_.relative_error; }
  double absolute_error() const override { return numbers_.absolute_error; }
  double largest() const override { return numbers_.largest; }

  void Encode(const float* values, int64_t n, char* encoded) const override {
    HWY_DYNAMIC_DISPATCH(Encode)(format_, values, n, encoded);
  }
  void Decode(const char* encoded, int64_t n, float* values) const override {
    HWY_DYNAMIC_DISPATCH(Decode)(format_, encoded, n, values);
  }
  int64_t FirstNonFinite(const char* encoded, int64_t n) const override {
    return HWY_DYNAMIC_DISPATCH(FirstNonFinite)(format_, encoded, n);
  }

 private:
  const absl::string_view name_;
  const ValueFormat format_;
  const Numbers numbers_;
};

// Errors: half of the last significant bit, and half of the spacing of the
// smallest values.
[[maybe_unused]] const bool kBf16Registered = CodecRegistry::Register(
    "bf16",
    new HalfCodec("bf16", ValueFormat::kBf16, {0x1p-8, 0x1p-134, 0x1.fep127}));
[[maybe_unused]] const bool kFp16Registered = CodecRegistry::Register(
    "fp16",
    new HalfCodec("fp16", ValueFormat::kFp16, {0x1p-11, 0x1p-25, 65504}));

}  // namespace
}  // namespace muster
#endif  // HWY_ONCE
