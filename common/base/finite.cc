#include "common/base/finite.h"

#include <array>
#include <cmath>
#include <cstring>

namespace muster {
namespace {

// Whether a value of 64 is NaN or infinite: all exponent bits are set, so that
// adding one to the exponent carries into the sign bit. The constant count
// lets the compiler vectorize at -O2.
bool AnyNonFinite64(const float* values) {
  std::array<uint32_t, 64> bits;
  std::memcpy(bits.data(), values, sizeof(bits));
  uint32_t carry = 0;
  for (int i = 0; i < 64; ++i) {
    carry |= (bits[i] & 0x7fffffffu) + 0x00800000u;
  }
  return (carry & 0x80000000u) != 0;
}

}  // namespace

int64_t FirstNonFinite(absl::Span<const float> values) {
  const int64_t n = static_cast<int64_t>(values.size());
  int64_t i = 0;
  while (i + 64 <= n && !AnyNonFinite64(values.data() + i)) i += 64;
  for (; i < n; ++i) {
    if (!std::isfinite(values[i])) return i;
  }
  return -1;
}

}  // namespace muster
