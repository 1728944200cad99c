// The zoo's resnet20 in float32 against PyTorch's float64 losses.
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/worker/model/golden_training.h"
#include "worker/backend/backend.h"

namespace muster {
namespace {

// Float32 against float64. Rounding turns a ReLU near 0 now and then, and batch
// norm of four rows carries that on: PyTorch's own two memory layouts in
// float32 are off by up to 4e-5 in the first steps, and by 2e-3 in 20.
constexpr size_t kEarlySteps = 5;
constexpr double kEarlyTolerance = 2e-4;
constexpr double kTolerance = 1e-2;

class ResnetParityTest : public testing::TestWithParam<int> {};

TEST_P(ResnetParityTest, CpuAgreesWithPyTorch) {
  BackendOptions options;
  options.compute_threads = GetParam();
  const auto backend = CreateBackend("cpu", options);
  ASSERT_TRUE(backend.ok()) << backend.status();
  const std::vector<double> golden = GoldenResnetLosses();
  const std::vector<double> losses =
      TrainGoldenResnet<float>(backend->get(), kGoldenSteps);
  ASSERT_EQ(losses.size(), golden.size());
  for (size_t i = 0; i < golden.size(); ++i) {
    EXPECT_NEAR(losses[i], golden[i],
                i < kEarlySteps ? kEarlyTolerance : kTolerance)
        << "step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ResnetParityTest, testing::Values(1, 2),
                         [](const auto& info) {
                           return absl::StrCat("threads", info.param);
                         });

}  // namespace
}  // namespace muster
