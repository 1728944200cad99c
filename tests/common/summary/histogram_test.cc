#include "common/summary/histogram.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr int kLast = Histogram::kBuckets - 1;

double TotalCount(const Histogram& histogram) {
  double total = 0;
  for (const auto& bucket : histogram.buckets) total += bucket.count;
  return total;
}

TEST(HistogramTest, CutsTheRangeIntoEqualBuckets) {
  std::vector<float> values(61);
  std::iota(values.begin(), values.end(), -30.f);  // -30, -29, ..., 30
  const Histogram histogram = MakeHistogram(values);
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    EXPECT_DOUBLE_EQ(histogram.buckets[i].left, -30 + 2 * i) << i;
    EXPECT_DOUBLE_EQ(histogram.buckets[i].right, -28 + 2 * i) << i;
    // Closed on the left, the last one on both sides.
    EXPECT_EQ(histogram.buckets[i].count, i == kLast ? 3 : 2) << i;
  }
}

TEST(HistogramTest, EqualValuesCountInTheLastBucket) {
  const Histogram histogram = MakeHistogram(std::vector<float>(7, -2.5f));
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    EXPECT_EQ(histogram.buckets[i].left, -2.5) << i;
    EXPECT_EQ(histogram.buckets[i].right, -2.5) << i;
    EXPECT_EQ(histogram.buckets[i].count, i == kLast ? 7 : 0) << i;
  }
}

TEST(HistogramTest, NothingIsAllZero) {
  const Histogram histogram = MakeHistogram({});
  EXPECT_EQ(histogram.buckets[0].left, 0);
  EXPECT_EQ(histogram.buckets[kLast].right, 0);
  EXPECT_EQ(TotalCount(histogram), 0);
}

TEST(HistogramTest, LeavesOutWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Histogram histogram =
      MakeHistogram({infinity, 1.f, std::nanf(""), 4.f, -infinity});
  EXPECT_EQ(histogram.buckets[0].left, 1);
  EXPECT_EQ(histogram.buckets[kLast].right, 4);
  EXPECT_EQ(TotalCount(histogram), 2);
}

TEST(HistogramTest, CountsTheWholeRangeOfFloats) {
  const float max = std::numeric_limits<float>::max();
  const Histogram histogram = MakeHistogram({-max, 0.f, max});
  EXPECT_EQ(histogram.buckets[0].count, 1);
  EXPECT_EQ(histogram.buckets[Histogram::kBuckets / 2].count, 1);
  EXPECT_EQ(histogram.buckets[kLast].count, 1);
}

TEST(HistogramTest, AgreesWithItselfOnCounts) {
  // 2 twice, 3 once, 5 four times.
  const Histogram counted = MakeCountHistogram({0, 0, 2, 1, 0, 4, 0});
  const Histogram listed = MakeHistogram({2.f, 2.f, 3.f, 5.f, 5.f, 5.f, 5.f});
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    EXPECT_DOUBLE_EQ(counted.buckets[i].left, listed.buckets[i].left) << i;
    EXPECT_DOUBLE_EQ(counted.buckets[i].right, listed.buckets[i].right) << i;
    EXPECT_EQ(counted.buckets[i].count, listed.buckets[i].count) << i;
  }
}

TEST(HistogramTest, NoCountsAreAllZero) {
  EXPECT_EQ(TotalCount(MakeCountHistogram({})), 0);
  EXPECT_EQ(TotalCount(MakeCountHistogram({0, 0})), 0);
}

}  // namespace
}  // namespace muster
