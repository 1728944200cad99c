#include "worker/backend/cuda/dropout_kernel.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/host_stream.h"
#include "worker/backend/dropout_mask.h"

namespace muster {
namespace {

constexpr double kRate = 0.3;

// One run over ones, forward and then backward.
struct Dropped {
  Dropped(double rate, uint64_t seed, int64_t n, const ElementRuns& runs = {})
      : dst(n, 1), mask(n, 255), diff(n, 1) {
    const HostStream stream;
    // In place, both.
    EXPECT_THAT(DropoutForward(stream.get(), rate, &seed, dst.data(),
                               dst.data(), mask.data(), n, runs),
                IsOk());
    EXPECT_THAT(DropoutBackward(stream.get(), rate, mask.data(), diff.data(),
                                diff.data(), n),
                IsOk());
  }

  std::vector<float> dst;
  std::vector<uint8_t> mask;
  std::vector<float> diff;
};

TEST(DropoutKernelTest, DrawsTheMaskOfEveryBackend) {
  // Beyond one step of the grid, too.
  const int64_t n = kMostBlocks * kBlockThreads + 7;
  for (const uint64_t seed : {uint64_t{0}, ~uint64_t{0}}) {
    const Dropped dropped(kRate, seed, n);
    const DropoutMask mask(kRate, seed);
    const auto scale = static_cast<float>(1 / (1 - kRate));
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(dropped.mask[i], mask.Keeps(i) ? 1 : 0) << i;
      ASSERT_EQ(dropped.dst[i], mask.Keeps(i) ? scale : 0) << i;
      ASSERT_EQ(dropped.diff[i], dropped.dst[i]) << i;
    }
  }
}

TEST(DropoutKernelTest, APartOfABatchHasItsPartOfTheMask) {
  ElementRuns runs;
  runs.first = 40;
  runs.length = 3;
  runs.stride = 12;
  constexpr int64_t kElements = 30;
  const Dropped dropped(kRate, /*seed=*/5, kElements, runs);
  std::vector<uint8_t> wanted(kElements);
  FillMask(DropoutMask(kRate, /*seed=*/5), runs, 0, kElements, wanted.data());
  EXPECT_EQ(dropped.mask, wanted);
}

TEST(DropoutKernelTest, RateZeroChangesNothing) {
  const Dropped dropped(0, 3, 100);
  EXPECT_EQ(dropped.dst, std::vector<float>(100, 1));
  EXPECT_EQ(dropped.diff, std::vector<float>(100, 1));
}

}  // namespace
}  // namespace muster
