// Loads of vectors of values in each ValueFormat, decoded in registers:
// compiled once for each instruction set, included by a source file after
// hwy/foreach_target.h.

// Guarded once for each instruction set, as Highway's own *-inl.h files.
#if defined(COMMON_CODEC_VALUE_LOAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef COMMON_CODEC_VALUE_LOAD_INL_H_
#undef COMMON_CODEC_VALUE_LOAD_INL_H_
#else
#define COMMON_CODEC_VALUE_LOAD_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using BitsTag = hn::RebindToUnsigned<FloatTag>;
using HalfTag = hn::Rebind<uint16_t, BitsTag>;

// A Load has the type of a value as it is stored, and At(p): the values of a
// vector from p on, which needs no alignment.
struct Float32Load {
  using Stored = float;
  static HWY_ATTR HWY_INLINE hn::Vec<FloatTag> At(const float* values) {
    return hn::LoadU(FloatTag(), values);
  }
};

// As bits of a float32, in the lower half.
HWY_ATTR HWY_INLINE hn::Vec<BitsTag> LoadHalves(const uint16_t* values) {
  return hn::PromoteTo(BitsTag(), hn::LoadU(HalfTag(), values));
}

// The twin is FloatOfBf16Ref.
struct Bf16Load {
  using Stored = uint16_t;
  static HWY_ATTR HWY_INLINE hn::Vec<FloatTag> At(const uint16_t* values) {
    return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(LoadHalves(values)));
  }
};

// The twin is FloatOfFp16Ref. Not Highway's own conversion: where the machine
// has none, it drops what is below the normal range.
struct Fp16Load {
  using Stored = uint16_t;
  // As bits of a float32: what its exponent is larger by, and 2^-14.
  static constexpr uint32_t kExponentOffset = (127u - 15u) << 23;
  static constexpr uint32_t kLeastNormal = (127u - 14u) << 23;

  static HWY_ATTR HWY_INLINE hn::Vec<FloatTag> At(const uint16_t* values) {
    const BitsTag d;
    const FloatTag f;
    const auto bits = LoadHalves(values);
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(d, 0x8000u)));
    const auto magnitude =
        hn::ShiftLeft<13>(hn::And(bits, hn::Set(d, 0x7fffu)));
    const auto normal = hn::Add(magnitude, hn::Set(d, kExponentOffset));
    const auto special = hn::Or(magnitude, hn::Set(d, 0x7f800000u));
    // Below the normal range the fraction has no leading 1: as a float it is
    // given one, worth 2^-14, which is then subtracted.
    const auto least = hn::Set(d, kLeastNormal);
    const auto with_one = hn::Add(magnitude, least);
    const auto small = hn::BitCast(
        d, hn::Sub(hn::BitCast(f, with_one), hn::BitCast(f, least)));
    const auto finite = hn::IfThenElse(
        hn::Lt(magnitude, hn::Set(d, 0x0400u << 13)), small, normal);
    return hn::BitCast(
        f, hn::Or(sign,
                  hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x7c00u << 13)),
                                 finite, special)));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#endif  // COMMON_CODEC_VALUE_LOAD_INL_H_
