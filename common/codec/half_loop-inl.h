// The loops of codecs with 16 bits a value, compiled once for each instruction
// set: included by a codec's source file after hwy/foreach_target.h.
//
// `encode` gets and gives vectors of 32-bit lanes: the bits of float32 values,
// and encoded ones in the lower half; what decodes is a Load
// (value_load-inl.h). A tail shorter than a vector goes through a buffer and
// the same arithmetic, so a value's bits do not depend on its position. Both
// sides may lie anywhere in memory.

// Guarded once for each instruction set, as Highway's own *-inl.h files.
#if defined(COMMON_CODEC_HALF_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef COMMON_CODEC_HALF_LOOP_INL_H_
#undef COMMON_CODEC_HALF_LOOP_INL_H_
#else
#define COMMON_CODEC_HALF_LOOP_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "common/codec/value_load-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename Encode>
HWY_ATTR void EncodeHalves(const float* values, int64_t n, char* encoded,
                           const Encode& encode) {
  const BitsTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto encode_at = [&](const float* in, uint16_t* out) HWY_ATTR {
    const auto bits = hn::LoadU(d, reinterpret_cast<const uint32_t*>(in));
    const auto halves =
        hn::BitCast(hn::RebindToSigned<BitsTag>(), encode(bits));
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

template <typename Load>
HWY_ATTR void DecodeHalves(const char* encoded, int64_t n, float* values) {
  const FloatTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* in = reinterpret_cast<const uint16_t*>(encoded);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(Load::At(in + i), d, values + i);
  }
  if (i == n) return;
  uint16_t tail[hn::MaxLanes(d)] = {};
  float tail_out[hn::MaxLanes(d)];
  std::memcpy(tail, encoded + i * 2, static_cast<size_t>(n - i) * 2);
  hn::StoreU(Load::At(tail), d, tail_out);
  std::memcpy(values + i, tail_out, static_cast<size_t>(n - i) * sizeof(float));
}

// The index of the first value that is NaN or infinite, or -1. `exponent_unit`
// is the last bit of the exponent: where all its bits are set, adding one
// carries into the sign.
HWY_ATTR inline int64_t FirstNonFiniteHalf(const char* encoded, int64_t n,
                                           uint16_t exponent_unit) {
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

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#endif  // COMMON_CODEC_HALF_LOOP_INL_H_
