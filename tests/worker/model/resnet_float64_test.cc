// ref in double precision against PyTorch's float64 losses of resnet20.
// One of scripts/test.sh --full.
#include <cstddef>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/model/golden_training.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

// Only the order of sums differs: by 2e-15, measured.
constexpr double kTolerance = 1e-12;

TEST(ResnetFloat64Test, RefAgreesWithPyTorch) {
  const std::unique_ptr<Backend> ref = MakeBackend("ref_float64");
  const std::vector<double> golden = GoldenResnetLosses();
  const std::vector<double> losses =
      TrainGoldenResnet<double>(ref.get(), kGoldenSteps);
  ASSERT_EQ(losses.size(), golden.size());
  for (size_t i = 0; i < golden.size(); ++i) {
    EXPECT_NEAR(losses[i], golden[i], kTolerance) << "step " << i;
  }
}

}  // namespace
}  // namespace muster
