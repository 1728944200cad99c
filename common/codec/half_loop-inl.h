// The loops of codecs with 16 bits a value, compiled once for each instruction
// set: included by a codec's source file after hwy/foreach_target.h.
//
// `encode` and `decode` get and give vectors of 32-bit lanes: the bits of
// float32 values, or encoded ones in the lower half. A tail shorter than a
// vector goes through a buffer and the same arithmetic, so a value's bits do
// not depend on its position. Both sides may lie anywhere in memory.

// Guarded once for each instruction set, as Highway's own *-inl.h files.
#if defined(COMMON_CODEC_HALF_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef COMMON_CODEC_HALF_LOOP_INL_H_
#undef COMMON_CODEC_HALF_LOOP_INL_H_
#else
#define COMMON_CODEC_HALF_LOOP_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using BitsTag = hn::ScalableTag<uint32_t>;
using HalfTag = hn::Rebind<uint16_t, BitsTag>;

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

template <typename Decode>
HWY_ATTR void DecodeHalves(const char* encoded, int64_t n, float* values,
                           const Decode& decode) {
  const BitsTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto decode_at = [&](const uint16_t* in, float* out) HWY_ATTR {
    const auto bits = decode(hn::PromoteTo(d, hn::LoadU(HalfTag(), in)));
    hn::StoreU(bits, d, reinterpret_cast<uint32_t*>(out));
  };
  const auto* in = reinterpret_cast<const uint16_t*>(encoded);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) decode_at(in + i, values + i);
  if (i == n) return;
  uint16_t tail[hn::MaxLanes(d)] = {};
  float tail_out[hn::MaxLanes(d)];
  std::memcpy(tail, encoded + i * 2, static_cast<size_t>(n - i) * 2);
  decode_at(tail, tail_out);
  std::memcpy(values + i, tail_out, static_cast<size_t>(n - i) * sizeof(float));
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#endif  // COMMON_CODEC_HALF_LOOP_INL_H_
