#include "worker/tower/mean.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

// Whole blocks, parts of one, and none.
constexpr size_t kSizes[] = {0, 1, 15, 16, 17, 100};

std::vector<float> Numbers(size_t size, float first) {
  std::vector<float> numbers(size);
  for (size_t i = 0; i < size; ++i) numbers[i] = first + 3 * i;
  return numbers;
}

// Small whole numbers: every sum and quotient here is exact.
TEST(MeanTest, WritesTheMean) {
  for (const size_t size : kSizes) {
    const std::vector<float> a = Numbers(size, 1);
    const std::vector<float> b = Numbers(size, 5);
    std::vector<float> mean(size, -1.0f);
    WriteMean({a, b}, absl::MakeSpan(mean));
    EXPECT_EQ(mean, Numbers(size, 3));
  }
}

TEST(MeanTest, MayWriteOverASource) {
  for (const size_t size : kSizes) {
    const std::vector<float> a = Numbers(size, 1);
    std::vector<float> b = Numbers(size, 5);
    WriteMean({a, b}, absl::MakeSpan(b));
    EXPECT_EQ(b, Numbers(size, 3));
  }
}

TEST(MeanTest, OfOneIsItself) {
  const std::vector<float> a = {0.1f, -7.3f};
  std::vector<float> mean(2);
  WriteMean({a}, absl::MakeSpan(mean));
  EXPECT_EQ(mean, a);
}

TEST(MeanTest, SumsInTheOrderOfItsArguments) {
  const std::vector<float> big = {1e8f};
  const std::vector<float> minus_big = {-1e8f};
  const std::vector<float> one = {1};
  std::vector<float> mean(1);
  WriteMean({big, minus_big, one, one}, absl::MakeSpan(mean));
  EXPECT_EQ(mean[0], 0.5f);
  WriteMean({big, one, minus_big, one}, absl::MakeSpan(mean));
  EXPECT_EQ(mean[0], 0.25f);
}

TEST(MeanTest, AddsAndScales) {
  for (const size_t size : kSizes) {
    std::vector<float> sum = Numbers(size, 1);
    AddAndScale(Numbers(size, 5), 0.5f, absl::MakeSpan(sum));
    EXPECT_EQ(sum, Numbers(size, 3));
  }
}

}  // namespace
}  // namespace muster
