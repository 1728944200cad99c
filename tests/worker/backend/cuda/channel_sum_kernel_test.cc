#include "worker/backend/cuda/channel_sum_kernel.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/host_stream.h"
#include "tests/worker/backend/primitive_run.h"

namespace muster {
namespace {

constexpr uint64_t kSeed = 5;

int64_t Values(const ChannelShape& s) { return s.outer * s.inner; }

// Channels of few and many values, of each order, and odd numbers of all.
std::vector<ChannelShape> Shapes() {
  return {{1, 1, 1},   {3, 5, 7},    {128, 1, 1},  {129, 3, 1},  {1, 3, 129},
          {2, 5, 300}, {1001, 7, 3}, {5000, 1, 1}, {9, 1, 1031}, {130, 600, 1}};
}

template <typename T>
std::vector<T> Sum(const HostStream& stream, const ChannelShape& shape,
                   const std::vector<T>& src) {
  // As long as they are said to be: a sanitizer sees what is beyond.
  std::vector<T> dst(shape.channels), scratch(ChannelSumScratch(shape));
  EXPECT_THAT(
      SumChannels(stream.get(), shape, src.data(), dst.data(), scratch.data()),
      IsOk());
  return dst;
}

template <typename T>
void ExpectSums(const ChannelShape& shape) {
  SCOPED_TRACE(
      absl::StrCat(shape.outer, " ", shape.channels, " ", shape.inner));
  const int64_t elements = Values(shape) * shape.channels;
  const auto values = RandomValues(elements, kSeed);
  std::vector<double> wanted(shape.channels);
  for (int64_t i = 0; i < elements; ++i) {
    wanted[i / shape.inner % shape.channels] += values[i];
  }
  const HostStream stream;
  const std::vector<T> sums =
      Sum(stream, shape, std::vector<T>(values.begin(), values.end()));
  ExpectNear({sums.begin(), sums.end()}, wanted, SumTolerance(Values(shape)),
             /*relative=*/0, "sums");
}

TEST(ChannelSumKernelTest, SumsEachChannel) {
  for (const ChannelShape& shape : Shapes()) {
    ExpectSums<float>(shape);
    ExpectSums<double>(shape);
  }
}

// 2^24 + 1 is not a float: one sum from end to end would stay at 2^24.
TEST(ChannelSumKernelTest, RoundsPartsOfALongSumApart) {
  const ChannelShape shape = {int64_t{1} << 14, 1, 1};
  std::vector<float> src(Values(shape), 1.0f);
  src[0] = 16777216;
  const HostStream stream;
  EXPECT_NEAR(Sum(stream, shape, src)[0], 16777216.0f + Values(shape) - 1, 64);
}

TEST(ChannelSumKernelTest, SumsColumnsWhereTheyLie) {
  const ChannelShape shape = {20000, 3, 1};
  std::vector<float> memory(Values(shape) * shape.channels);
  for (int64_t i = 0; i < static_cast<int64_t>(memory.size()); ++i) {
    memory[i] = static_cast<float>(i % shape.channels);
  }
  std::vector<float> dst(shape.channels);
  const HostStream stream;
  ASSERT_THAT(SumChannels(stream.get(), shape, memory.data(), dst.data(),
                          memory.data()),
              IsOk());
  EXPECT_THAT(dst, testing::ElementsAre(0, 20000, 40000));
}

TEST(ChannelSumKernelTest, AFewValuesTakeOneLaunchAndNoScratch) {
  const HostStream stream;
  EXPECT_EQ(Sum(stream, {128, 2, 1}, std::vector<float>(256, 1))[1], 128);
  EXPECT_EQ(stream.launches(), 1);
  EXPECT_EQ(ChannelSumScratch({128, 2, 1}), 0);
  EXPECT_GT(ChannelSumScratch({129, 2, 1}), 0);
}

TEST(ChannelSumKernelTest, StopsAtALaunchThatFails) {
  HostStream stream;
  const ChannelShape shape = {5000, 1, 1};
  const std::vector<float> src(Values(shape), 1);
  std::vector<float> dst(1), scratch(ChannelSumScratch(shape));
  stream.FailAfter(1);
  EXPECT_THAT(
      SumChannels(stream.get(), shape, src.data(), dst.data(), scratch.data()),
      StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(stream.launches(), 1);
}

}  // namespace
}  // namespace muster
