// Whole models of the zoo: every backend agrees with ref, of one seed, in loss
// and every gradient, step after step.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/worker/backend/parity_backends.h"
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

// Found over wanted, along the wanted ones: 1 of the same gradient, 0.5 of half
// of it, about 0 of another one.
double Scale(absl::Span<const double> want, absl::Span<const float> found) {
  double product = 0;
  double square = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    product += want[i] * found[i];
    square += want[i] * want[i];
  }
  return square == 0 ? 1 : product / square;
}

// Where the factors of products have fewer bits the loss is right to a few
// units of the last one. More of the ReLUs and maxima change sides then, and
// batch norm of few rows carries it on, most into its own shifts and scales.
// Measured with bf16: all gradients together are at most 0.12 away from ref's
// and 0.007 shorter or longer along them; a single parameter's is 0.84 to 1.25
// times as long. Half a gradient of any parameter is outside.
constexpr double kLossUnits = 8;
constexpr double kLowPrecisionMeanTolerance = 0.25;
constexpr double kLowPrecisionScaleTolerance = 0.03;
constexpr double kLowPrecisionOneScaleTolerance = 0.4;

using Case = std::tuple<std::string, ParityBackend>;

class ZooParityTest : public testing::TestWithParam<Case> {
 public:
  static std::string NameOf(const testing::TestParamInfo<Case>& info) {
    return absl::StrCat(std::get<0>(info.param), "_",
                        std::get<1>(info.param).label);
  }

 protected:
  void SetUp() override {
    auto made = std::get<1>(GetParam()).make();
    if (absl::IsUnavailable(made.status())) GTEST_SKIP() << made.status();
    ASSERT_TRUE(made.ok()) << made.status();
    backend_ = *std::move(made);
  }
  const std::string& model() const { return std::get<0>(GetParam()); }
  int factor_bits() const { return std::get<1>(GetParam()).factor_bits; }

  bool is_float32() const { return factor_bits() == 24; }

  void ExpectSameLoss(const CompiledModel::StepResult& found,
                      const CompiledModel::StepResult& want) const {
    const double tolerance =
        is_float32() ? kLossTolerance : std::ldexp(kLossUnits, -factor_bits());
    EXPECT_NEAR(found.loss, want.loss, tolerance * want.loss);
    if (is_float32()) {
      EXPECT_EQ(found.correct, want.correct);
    }
  }

  void ExpectSameGradients(const CompiledModel& found,
                           const CompiledModel& want) const {
    std::vector<double> all_want;
    std::vector<float> all_found;
    for (size_t i = 0; i < want.parameters().size(); ++i) {
      const auto one_want = want.gradient_as<double>(i);
      const auto one_found = found.gradient(i);
      all_want.insert(all_want.end(), one_want.begin(), one_want.end());
      all_found.insert(all_found.end(), one_found.begin(), one_found.end());
      if (!is_float32()) {
        EXPECT_NEAR(Scale(one_want, one_found), 1,
                    kLowPrecisionOneScaleTolerance)
            << want.parameters()[i].name();
        continue;
      }
      EXPECT_LE(Distance(one_want, one_found), kMeanTolerance)
          << want.parameters()[i].name();
    }
    EXPECT_LE(Distance(all_want, all_found), kLowPrecisionMeanTolerance);
    EXPECT_NEAR(Scale(all_want, all_found), 1, kLowPrecisionScaleTolerance);
  }

  const Batch batch_ = MakeBatch(kRows, 28 * 28, 10, kSeed);
  const std::unique_ptr<Backend> ref_ = MakeBackend("ref_float64");
  std::unique_ptr<Backend> backend_;
};

// On a device with streams the first step is run as it is, the second captured,
// the third launched.
TEST_P(ZooParityTest, StepsAgreeWithRef) {
  const auto mode = CompileOptions::Mode::kTrain;
  const auto want = MakeModel(model(), ref_.get(), mode);
  const auto found = MakeModel(model(), backend_.get(), mode);
  const uint64_t steps = backend_->streams() == nullptr ? 1 : 3;
  for (uint64_t step = 0; step < steps; ++step) {
    SCOPED_TRACE(step);
    const auto want_step = want->Step(batch_, kSeed + step);
    const auto found_step = found->Step(batch_, kSeed + step);
    ASSERT_TRUE(want_step.ok()) << want_step.status();
    ASSERT_TRUE(found_step.ok()) << found_step.status();
    ExpectSameLoss(*found_step, *want_step);
    ExpectSameGradients(*found, *want);
  }
}

TEST_P(ZooParityTest, EvaluationAgreesWithRef) {
  const auto mode = CompileOptions::Mode::kEvaluate;
  const auto want = MakeModel(model(), ref_.get(), mode);
  const auto found = MakeModel(model(), backend_.get(), mode);
  const auto want_result = want->Evaluate(batch_);
  const auto found_result = found->Evaluate(batch_);
  ASSERT_TRUE(want_result.ok()) << want_result.status();
  ASSERT_TRUE(found_result.ok()) << found_result.status();
  ExpectSameLoss(*found_result, *want_result);
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, ZooParityTest,
    testing::Combine(testing::Values("mnist_cnn", "softmax_regression", "mlp",
                                     "inception_small"),
                     testing::ValuesIn(ParityBackends())),
    ZooParityTest::NameOf);

}  // namespace
}  // namespace muster
