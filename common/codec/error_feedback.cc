#include "common/codec/error_feedback.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

#include "common/base/finite.h"

namespace muster {
namespace {

// 4 KB: the tiles stay in the first-level cache.
constexpr int64_t kTile = 1024;
using Tile = std::array<float, kTile>;

// gradient + residual. The sum of two finite numbers stays finite.
void Add(const float* gradient, const float* residual, int64_t n, float* sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] = gradient[i] + residual[i];
  if (FirstNonFinite(absl::MakeConstSpan(sum, n)) < 0) return;
  for (int64_t i = 0; i < n; ++i) {
    if (std::isfinite(sum[i]) || !std::isfinite(gradient[i])) continue;
    sum[i] = std::copysign(std::numeric_limits<float>::max(), sum[i]);
  }
}

void ZeroNonFinite(float* values, int64_t n) {
  if (FirstNonFinite(absl::MakeConstSpan(values, n)) < 0) return;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(values[i])) values[i] = 0;
  }
}

}  // namespace

void ErrorFeedback::Clear(int64_t values) {
  residual_.assign(static_cast<size_t>(values), 0);
  lost_.assign(static_cast<size_t>(values), 0);
}

void ErrorFeedback::Encode(int64_t begin, int64_t n, const float* gradient,
                           char* encoded) {
  assert(begin + n <= values());
  Tile sum;
  Tile decoded;
  for (int64_t done = 0; done < n; done += kTile) {
    const int64_t count = std::min(kTile, n - done);
    float* const lost = lost_.data() + begin + done;
    char* const bytes = encoded + EncodedBytes(&codec_, done);
    Add(gradient + done, residual_.data() + begin + done, count, sum.data());
    codec_.Encode(sum.data(), count, bytes);
    codec_.Decode(bytes, count, decoded.data());
    for (int64_t i = 0; i < count; ++i) lost[i] = sum[i] - decoded[i];
    ZeroNonFinite(lost, count);
  }
}

void ErrorFeedback::Keep(int64_t begin, int64_t n) {
  if (n == values()) return residual_.swap(lost_);
  std::copy_n(lost_.begin() + begin, n, residual_.begin() + begin);
}

void ErrorFeedback::TakeBack(int64_t begin, int64_t n, const char* encoded) {
  Tile decoded;
  for (int64_t done = 0; done < n; done += kTile) {
    const int64_t count = std::min(kTile, n - done);
    const float* const lost = lost_.data() + begin + done;
    float* const residual = residual_.data() + begin + done;
    codec_.Decode(encoded + EncodedBytes(&codec_, done), count, decoded.data());
    for (int64_t i = 0; i < count; ++i) residual[i] = lost[i] + decoded[i];
    ZeroNonFinite(residual, count);
  }
}

}  // namespace muster
