#include "common/summary/histogram.h"

#include <algorithm>
#include <cmath>

namespace muster {
namespace {

// Empty buckets of equal width from min to max.
Histogram MakeBuckets(double min, double max) {
  constexpr int k = Histogram::kBuckets;
  Histogram histogram;
  double left = min;
  for (int i = 0; i < k; ++i) {
    const double right = i + 1 == k ? max : min + (max - min) * (i + 1) / k;
    histogram.buckets[i] = {left, right, 0};
    left = right;
  }
  return histogram;
}

// The bucket of `value`, min <= value <= max.
int BucketOf(double value, double min, double max) {
  constexpr int last = Histogram::kBuckets - 1;
  if (min == max) return last;
  const double width = (max - min) / Histogram::kBuckets;
  return std::min(last, static_cast<int>((value - min) / width));
}

}  // namespace

Histogram MakeHistogram(absl::Span<const float> values) {
  float min = 0;
  float max = 0;
  bool any = false;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    min = any ? std::min(min, value) : value;
    max = any ? std::max(max, value) : value;
    any = true;
  }
  Histogram histogram = MakeBuckets(min, max);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    histogram.buckets[BucketOf(value, min, max)].count += 1;
  }
  return histogram;
}

Histogram MakeCountHistogram(absl::Span<const int64_t> counts) {
  const auto occurs = [](int64_t count) { return count > 0; };
  const auto first = std::find_if(counts.begin(), counts.end(), occurs);
  if (first == counts.end()) return MakeBuckets(0, 0);
  const auto last = std::find_if(counts.rbegin(), counts.rend(), occurs);
  const auto min = static_cast<double>(first - counts.begin());
  const auto max = static_cast<double>(counts.rend() - last - 1);
  Histogram histogram = MakeBuckets(min, max);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const auto value = static_cast<double>(i);
    histogram.buckets[BucketOf(value, min, max)].count +=
        static_cast<double>(counts[i]);
  }
  return histogram;
}

}  // namespace muster
