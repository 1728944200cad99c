#ifndef COMMON_SUMMARY_HISTOGRAM_H_
#define COMMON_SUMMARY_HISTOGRAM_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"

namespace muster {

// How values are spread, in the form of TensorBoard's histograms: equal
// buckets from the least to the largest value, closed on the left; the last is
// closed on both sides. If all values are equal, every bucket is [value, value]
// and the last one counts; without values all is 0.
struct Histogram {
  static constexpr int kBuckets = 30;

  struct Bucket {
    double left = 0;
    double right = 0;
    double count = 0;
  };
  std::array<Bucket, kBuckets> buckets;
};

// Counts the finite ones among `values`: the others have no place on an axis.
Histogram MakeHistogram(absl::Span<const float> values);

// Counts the whole numbers 0, 1, 2, ... of which `counts` says how often each
// occurs. REQUIRES: no count is negative.
Histogram MakeCountHistogram(absl::Span<const int64_t> counts);

}  // namespace muster

#endif  // COMMON_SUMMARY_HISTOGRAM_H_
