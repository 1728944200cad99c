#include "worker/backend/cuda/batch_norm_kernel.h"

#include <cmath>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/host_stream.h"
#include "tests/worker/backend/primitive_run.h"

namespace muster {
namespace {

using testing::Each;
using Floats = std::vector<float>;

constexpr double kEpsilon = 1e-5;
constexpr uint64_t kSeed = 11;

// All operands of one batch norm; scratch is as long as it is said to be, so
// that a sanitizer sees what is beyond.
struct Memory {
  explicit Memory(const ChannelShape& s)
      : shape(s),
        src(s.outer * s.channels * s.inner),
        dst(src.size()),
        diff_dst(src.size()),
        diff_src(src.size()),
        weights(s.channels, 1),
        bias(s.channels),
        mean(s.channels),
        variance(s.channels),
        diff_weights(s.channels),
        diff_bias(s.channels) {}

  BatchNormMemory View(Floats& scratch) {
    return {src.data(),       weights.data(),  bias.data(),
            dst.data(),       mean.data(),     variance.data(),
            diff_dst.data(),  diff_src.data(), diff_weights.data(),
            diff_bias.data(), scratch.data()};
  }
  void Forward() {
    Floats scratch(BatchNormForwardScratch(shape));
    const HostStream stream;
    EXPECT_THAT(BatchNormTraining(stream.get(), shape, kEpsilon, View(scratch)),
                IsOk());
  }
  void Backward() {
    Floats scratch(BatchNormBackwardScratch(shape));
    const HostStream stream;
    EXPECT_THAT(BatchNormBackward(stream.get(), shape, kEpsilon, View(scratch)),
                IsOk());
  }

  const ChannelShape shape;
  Floats src, dst, diff_dst, diff_src;
  Floats weights, bias, mean, variance, diff_weights, diff_bias;
};

Floats Random(int64_t n, uint64_t seed) {
  const Values values = RandomValues(n, seed);
  return {values.begin(), values.end()};
}

TEST(BatchNormKernelTest, OneValueAChannelBecomesTheBias) {
  Memory memory({1, 3, 1});
  memory.src = {5, -7, 0};
  memory.bias = {1, 2, 3};
  memory.diff_dst = {4, 5, 6};
  memory.Forward();
  EXPECT_EQ(memory.mean, memory.src);
  EXPECT_THAT(memory.variance, Each(0));
  EXPECT_EQ(memory.dst, memory.bias);
  memory.Backward();
  EXPECT_THAT(memory.diff_src, Each(0));
  EXPECT_THAT(memory.diff_weights, Each(0));
  EXPECT_EQ(memory.diff_bias, memory.diff_dst);
}

// The difference of the mean square and the square of the mean has no digit of
// this variance.
TEST(BatchNormKernelTest, KeepsASmallVarianceBesideALargeMean) {
  Memory memory({1000, 1, 1});
  for (int i = 0; i < 1000; ++i) {
    memory.src[i] = i % 2 == 0 ? 8192.0f : 8192.0f + 1.0f / 64;
  }
  memory.Forward();
  EXPECT_NEAR(memory.variance[0], std::pow(1.0 / 128, 2), 1e-7);
}

// Values of [2, 3, 150] as [300, 3, 1]: both orders, by more than one part.
TEST(BatchNormKernelTest, BothOrdersAreTheSameNumbers) {
  constexpr int kImages = 2, kChannels = 3, kArea = 150;
  Memory planes({kImages, kChannels, kArea});
  Memory last({kImages * kArea, kChannels, 1});
  planes.src = Random(kImages * kChannels * kArea, kSeed);
  planes.diff_dst = Random(kImages * kChannels * kArea, kSeed + 1);
  planes.weights = last.weights = {0.5, -2, 3};
  const auto index_in_last = [](int64_t i) {
    const int64_t n = i / (kChannels * kArea), c = i / kArea % kChannels;
    return (n * kArea + i % kArea) * kChannels + c;
  };
  for (int64_t i = 0; i < kImages * kChannels * kArea; ++i) {
    last.src[index_in_last(i)] = planes.src[i];
    last.diff_dst[index_in_last(i)] = planes.diff_dst[i];
  }
  for (Memory* memory : {&planes, &last}) {
    memory->Forward();
    memory->Backward();
  }
  // A part has every tenth value of a channel in both.
  EXPECT_EQ(planes.mean, last.mean);
  EXPECT_EQ(planes.variance, last.variance);
  EXPECT_EQ(planes.diff_weights, last.diff_weights);
  EXPECT_EQ(planes.diff_bias, last.diff_bias);
  for (int64_t i = 0; i < kImages * kChannels * kArea; ++i) {
    ASSERT_EQ(planes.dst[i], last.dst[index_in_last(i)]);
    ASSERT_EQ(planes.diff_src[i], last.diff_src[index_in_last(i)]);
  }
}

TEST(BatchNormKernelTest, InferenceUsesWhatIsGiven) {
  Memory memory({2, 1, 2});
  memory.src = {1, 3, 5, 7};
  memory.mean = {3};
  memory.variance = {static_cast<float>(4 - kEpsilon)};
  memory.weights = {2};
  memory.bias = {10};
  Floats no_scratch;
  const HostStream stream;
  ASSERT_THAT(BatchNormInference(stream.get(), memory.shape, kEpsilon,
                                 memory.View(no_scratch)),
              IsOk());
  EXPECT_THAT(memory.dst, testing::ElementsAre(8, 10, 12, 14));
  EXPECT_EQ(memory.mean[0], 3);
}

TEST(BatchNormKernelTest, StopsAtALaunchThatFails) {
  Memory memory({200, 2, 1});
  Floats scratch(BatchNormBackwardScratch(memory.shape));
  for (int launch = 0;; ++launch) {
    HostStream stream;
    stream.FailAfter(launch);
    const absl::Status status = BatchNormTraining(
        stream.get(), memory.shape, kEpsilon, memory.View(scratch));
    EXPECT_EQ(stream.launches(), launch);
    // Seven kernels, then none is left to fail.
    if (launch == 7) {
      EXPECT_THAT(status, IsOk());
      return;
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal));
  }
}

}  // namespace
}  // namespace muster
