#include "worker/backend/cuda/l2_penalty_kernel.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/host_stream.h"

namespace muster {
namespace {

using testing::Each;

TEST(L2PenaltyKernelTest, AddsToLossAndGradient) {
  for (const int64_t n : {1, 31, 128, 129, 5001, 300000}) {
    SCOPED_TRACE(n);
    const std::vector<float> weights(n, 3);
    std::vector<float> diff_weights(n, 1);
    std::vector<double> scratch(L2PenaltyScratch(n));
    double loss = 0.5;
    const HostStream stream;
    ASSERT_THAT(AddL2Penalty(stream.get(), 0.25, weights.data(), n, &loss,
                             diff_weights.data(), scratch.data()),
                IsOk());
    // Each sum here is exact.
    EXPECT_EQ(loss, 0.5 + 0.25 * 9 * static_cast<double>(n) / 2);
    EXPECT_THAT(diff_weights, Each(1.75f));
  }
}

TEST(L2PenaltyKernelTest, SumsInDouble) {
  // Its square and 1 have no sum in float.
  const std::vector<float> weights = {16384, 1};
  std::vector<double> scratch(L2PenaltyScratch(2));
  double loss = 0;
  const HostStream stream;
  ASSERT_THAT(AddL2Penalty(stream.get(), 2, weights.data(), 2, &loss,
                           /*diff_weights=*/nullptr, scratch.data()),
              IsOk());
  EXPECT_EQ(loss, 268435457);
}

TEST(L2PenaltyKernelTest, StopsAtALaunchThatFails) {
  const std::vector<float> weights(200, 1);
  std::vector<double> scratch(L2PenaltyScratch(200));
  double loss = 0;
  for (const int launch : {0, 1, 2}) {
    HostStream stream;
    stream.FailAfter(launch);
    EXPECT_THAT(AddL2Penalty(stream.get(), 1, weights.data(), 200, &loss,
                             nullptr, scratch.data()),
                StatusIs(absl::StatusCode::kInternal));
    EXPECT_EQ(stream.launches(), launch);
  }
  EXPECT_EQ(loss, 0);
}

}  // namespace
}  // namespace muster
