// ref in double precision against PyTorch's float64 losses, for each update
// rule.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/model/golden_training.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

// Only the order of sums differs, and 20 steps let that grow from 1e-15.
constexpr double kTolerance = 1e-9;

class ParityFloat64Test : public testing::TestWithParam<std::string> {};

TEST_P(ParityFloat64Test, RefAgreesWithPyTorch) {
  const std::unique_ptr<Backend> ref = MakeBackend("ref_float64");
  const std::vector<double> golden = GoldenLosses(GetParam());
  const int steps = ComparedSteps(GetParam());
  const std::vector<double> losses =
      TrainGolden<double>(ref.get(), GetParam(), steps);
  ASSERT_EQ(losses.size(), steps);
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], golden[i], kTolerance) << "step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, ParityFloat64Test,
                         testing::Values("sgd", "momentum", "nesterov",
                                         "adagrad", "rmsprop", "adam", "adamw"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace muster
