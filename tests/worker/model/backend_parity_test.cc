// Whole models: cpu agrees with ref, of one seed, in loss and every gradient.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

// Odd, so that no vector width divides it.
constexpr int64_t kRows = 5;
constexpr uint64_t kSeed = 3;
// Float32 sums of up to 3136 terms in another order, over up to 30 layers:
// relative to the largest element of a gradient. A ReLU or a maximum that
// changes sides moves single elements further; kMean holds then.
constexpr double kLossTolerance = 1e-5;
constexpr double kMeanTolerance = 1e-3;

std::unique_ptr<CompiledModel> MakeModel(const std::string& name,
                                         Backend* backend,
                                         CompileOptions::Mode mode) {
  CompileOptions options;
  options.backend = backend;
  options.batch_size = kRows;
  options.mode = mode;
  auto model = Compile(LoadZooModel(name).model(), options);
  EXPECT_TRUE(model->InitializeParameters(kSeed).ok());
  return model;
}

// Mean absolute difference over mean absolute value.
double Distance(absl::Span<const double> want, absl::Span<const float> found) {
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += std::abs(found[i] - want[i]);
    size += std::abs(want[i]);
  }
  return size == 0 ? difference : difference / size;
}

class BackendParityTest : public testing::TestWithParam<std::string> {
 protected:
  const Batch batch_ = MakeBatch(kRows, 28 * 28, 10, kSeed);
  const std::unique_ptr<Backend> ref_ = MakeBackend("ref_float64");
  const std::unique_ptr<Backend> cpu_ = MakeBackend("cpu");
};

TEST_P(BackendParityTest, CpuStepAgreesWithRef) {
  const auto mode = CompileOptions::Mode::kTrain;
  const auto want = MakeModel(GetParam(), ref_.get(), mode);
  const auto found = MakeModel(GetParam(), cpu_.get(), mode);
  const auto want_step = want->Step(batch_, kSeed);
  const auto found_step = found->Step(batch_, kSeed);
  ASSERT_TRUE(want_step.ok()) << want_step.status();
  ASSERT_TRUE(found_step.ok()) << found_step.status();
  EXPECT_NEAR(found_step->loss, want_step->loss,
              kLossTolerance * want_step->loss);
  EXPECT_EQ(found_step->correct, want_step->correct);
  for (size_t i = 0; i < want->parameters().size(); ++i) {
    EXPECT_LE(Distance(want->gradient_as<double>(i), found->gradient(i)),
              kMeanTolerance)
        << want->parameters()[i].name();
  }
}

TEST_P(BackendParityTest, CpuEvaluationAgreesWithRef) {
  const auto mode = CompileOptions::Mode::kEvaluate;
  const auto want = MakeModel(GetParam(), ref_.get(), mode);
  const auto found = MakeModel(GetParam(), cpu_.get(), mode);
  const auto want_result = want->Evaluate(batch_);
  const auto found_result = found->Evaluate(batch_);
  ASSERT_TRUE(want_result.ok()) << want_result.status();
  ASSERT_TRUE(found_result.ok()) << found_result.status();
  EXPECT_NEAR(found_result->loss, want_result->loss,
              kLossTolerance * want_result->loss);
  EXPECT_EQ(found_result->correct, want_result->correct);
}

INSTANTIATE_TEST_SUITE_P(Zoo, BackendParityTest,
                         testing::Values("mnist_cnn", "softmax_regression",
                                         "mlp", "inception_small"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace muster
