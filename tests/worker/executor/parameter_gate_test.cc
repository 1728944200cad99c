#include "worker/executor/parameter_gate.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kRows = 4;

// The values of a model, which are not there before they are asked for.
class LateValues : public ParameterGate {
 public:
  // The values that the model has now.
  explicit LateValues(CompiledModel* model) : model_(*model) {
    for (size_t i = 0; i < model->parameters().size(); ++i) {
      const absl::Span<float> value = model->parameter(static_cast<int>(i));
      values_.emplace_back(value.begin(), value.end());
      std::fill(value.begin(), value.end(),
                std::numeric_limits<float>::quiet_NaN());
    }
  }

  absl::Status BeforeUse(int parameter) override {
    asked_.push_back(model_.parameters()[parameter].name());
    if (asked_.back() == fails_at_) return absl::AbortedError("fenced: gone");
    std::copy(values_[parameter].begin(), values_[parameter].end(),
              model_.parameter(parameter).begin());
    return absl::OkStatus();
  }

  void FailAt(const std::string& parameter) { fails_at_ = parameter; }
  const std::vector<std::string>& asked() const { return asked_; }

 private:
  CompiledModel& model_;
  std::vector<std::vector<float>> values_;
  std::string fails_at_;
  std::vector<std::string> asked_;
};

class ParameterGateTest : public testing::TestWithParam<std::string> {
 protected:
  ParameterGateTest() {
    CompileOptions options;
    options.backend = backend_.get();
    options.batch_size = kRows;
    model_ = Compile(ParseModel(kManyUsesModel), options);
    EXPECT_THAT(model_->InitializeParameters(1), IsOk());
  }
  std::vector<float> Gradients() const {
    std::vector<float> all;
    for (size_t i = 0; i < model_->parameters().size(); ++i) {
      const absl::Span<const float> gradient =
          model_->gradient(static_cast<int>(i));
      all.insert(all.end(), gradient.begin(), gradient.end());
    }
    return all;
  }

  const std::unique_ptr<Backend> backend_ = MakeBackend(GetParam());
  const Batch batch_ =
      MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, /*seed=*/1);
  std::unique_ptr<CompiledModel> model_;
};

TEST_P(ParameterGateTest, NothingIsReadBeforeItIsAskedFor) {
  const auto wanted = model_->Step(batch_, /*step_seed=*/1);
  ASSERT_THAT(wanted, IsOk());
  const std::vector<float> gradients = Gradients();
  LateValues values(model_.get());
  const auto result =
      model_->Step(batch_, /*step_seed=*/1, {/*listener=*/nullptr, &values});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->loss, wanted->loss);
  EXPECT_EQ(Gradients(), gradients);
}

TEST_P(ParameterGateTest, EachIsAskedForOnceInTheOrderOfTheForwardPass) {
  LateValues values(model_.get());
  ASSERT_THAT(model_->Step(batch_, 1, {/*listener=*/nullptr, &values}), IsOk());
  EXPECT_THAT(
      values.asked(),
      ElementsAre("conv/weights", "norm/scale", "norm/shift", "first/weights",
                  "middle/weights", "logits/weights", "logits/bias",
                  "norm/moving_mean", "norm/moving_variance"));
}

TEST_P(ParameterGateTest, AnErrorEndsTheStepAsItIs) {
  LateValues values(model_.get());
  values.FailAt("first/weights");
  const auto result = model_->Step(batch_, 1, {/*listener=*/nullptr, &values});
  EXPECT_EQ(result.status(), absl::AbortedError("fenced: gone"));
  EXPECT_EQ(values.asked().back(), "first/weights");
}

INSTANTIATE_TEST_SUITE_P(Backends, ParameterGateTest,
                         testing::Values("ref", "cpu", "device_of_ref",
                                         "device_of_cpu"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace muster
