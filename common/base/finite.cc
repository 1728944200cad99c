#include "common/base/finite.h"

#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/base/finite.cc"
#include "hwy/foreach_target.h"  // Compiles this file once for each target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Bits = hn::ScalableTag<uint32_t>;

// The sign bit of each lane with a NaN or infinity is set: all their exponent
// bits are, so that adding one to the exponent carries.
HWY_ATTR inline hn::Vec<Bits> Carry(const float* values) {
  const Bits d;
  const auto bits = hn::LoadU(d, reinterpret_cast<const uint32_t*>(values));
  return hn::Add(hn::And(bits, hn::Set(d, 0x7fffffffu)),
                 hn::Set(d, 0x00800000u));
}

// Whole groups of four vectors from 0 on that are finite: their values.
HWY_ATTR int64_t FinitePrefix(const float* values, int64_t n) {
  const Bits d;
  const auto sign = hn::Set(d, 0x80000000u);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto first = hn::Or(Carry(values + i), Carry(values + i + lanes));
    const auto second =
        hn::Or(Carry(values + i + 2 * lanes), Carry(values + i + 3 * lanes));
    const auto found = hn::And(hn::Or(first, second), sign);
    if (!hn::AllTrue(d, hn::Eq(found, hn::Zero(d)))) break;
  }
  return i;
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {

HWY_EXPORT(FinitePrefix);

int64_t FirstNonFinite(absl::Span<const float> values) {
  const int64_t n = static_cast<int64_t>(values.size());
  for (int64_t i = HWY_DYNAMIC_DISPATCH(FinitePrefix)(values.data(), n); i < n;
       ++i) {
    if (!std::isfinite(values[i])) return i;
  }
  return -1;
}

bool CopyFinite(absl::Span<const float> values, float* dst) {
  // The look brings a tile into the first-level cache, from where memcpy takes
  // it: that knows which stores suit the machine.
  constexpr size_t kTile = 2048;
  bool all_finite = true;
  for (size_t done = 0; done < values.size(); done += kTile) {
    const absl::Span<const float> tile = values.subspan(done, kTile);
    all_finite &= FirstNonFinite(tile) < 0;
    std::memcpy(dst + done, tile.data(), tile.size() * sizeof(float));
  }
  return all_finite;
}

}  // namespace muster
#endif  // HWY_ONCE
