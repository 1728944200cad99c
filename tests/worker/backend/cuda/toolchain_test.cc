// That nvcc's kernels link with g++'s code, and run where a device is.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/scale.h"

namespace muster {
namespace {

TEST(CudaToolchainTest, RunsAKernelOrSaysWhyNot) {
  const auto scaled = ScaleOnDevice({1, 2, 3}, 2.0f);
  if (!scaled.ok()) {
    EXPECT_THAT(scaled, StatusIs(absl::StatusCode::kUnavailable));
    GTEST_SKIP() << "no CUDA device: " << scaled.status();
  }
  EXPECT_THAT(*scaled, testing::ElementsAre(2, 4, 6));
}

}  // namespace
}  // namespace muster
