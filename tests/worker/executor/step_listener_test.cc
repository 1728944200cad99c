#include "worker/executor/step_listener.h"

#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr int64_t kRows = 4;
constexpr int64_t kClasses = kManyUsesClasses;

// Keeps what a gradient is when it is called final, and spoils the parameter,
// which may then get its next value.
class Listener : public StepListener {
 public:
  explicit Listener(CompiledModel* model) : model_(*model) {}

  absl::Status OnForward(double loss) override {
    EXPECT_FALSE(loss_.has_value());
    loss_ = loss;
    return absl::OkStatus();
  }
  void OnGradient(int parameter) override {
    EXPECT_TRUE(loss_.has_value()) << "a gradient before the loss";
    order_.push_back(model_.parameters()[parameter].name());
    heard_.insert(parameter);
    const absl::Span<const float> gradient = model_.gradient(parameter);
    values_.emplace_back(gradient.begin(), gradient.end());
    indices_.push_back(parameter);
    for (float& value : model_.parameter(parameter)) value = NAN;
  }

  // That nothing was written to a gradient after it was called final, that each
  // was called so once, and that all are those of a step that nobody heard of.
  void ExpectAllFinal(
      const std::vector<std::vector<float>>& undisturbed) const {
    EXPECT_THAT(order_, SizeIs(model_.parameters().size()));
    EXPECT_THAT(heard_, SizeIs(model_.parameters().size()));
    for (size_t i = 0; i < order_.size(); ++i) {
      const absl::Span<const float> now = model_.gradient(indices_[i]);
      EXPECT_EQ(values_[i], std::vector<float>(now.begin(), now.end()))
          << order_[i];
      EXPECT_EQ(values_[i], undisturbed[indices_[i]]) << order_[i];
    }
  }

  std::optional<double> loss() const { return loss_; }
  const std::vector<std::string>& order() const { return order_; }

 private:
  CompiledModel& model_;
  std::optional<double> loss_;
  std::vector<std::string> order_;
  std::set<int> heard_;
  std::vector<int> indices_;
  std::vector<std::vector<float>> values_;
};

class StepListenerTest : public testing::TestWithParam<std::string> {
 protected:
  void Make(const std::string& spec) {
    CompileOptions options;
    options.backend = backend_.get();
    options.batch_size = kRows;
    if (is_divided_) {
      options.more_backends = {second_.get()};
      options.device_of = [](absl::string_view layer, int /*part*/) {
        return layer == "conv" || layer == "pool" || layer == "first" ? 1 : 0;
      };
    }
    model_ = Compile(ParseModel(spec), options);
    ASSERT_THAT(model_->InitializeParameters(1), IsOk());
  }
  // Another step between, so that no gradient happens to be what it was before.
  CompiledModel::StepResult Run(Listener* listener, int64_t elements) {
    EXPECT_THAT(model_->Step(MakeBatch(kRows, elements, kClasses, 2), 2),
                IsOk());
    for (size_t i = 0; i < model_->parameters().size(); ++i) {
      const absl::Span<const float> gradient =
          model_->gradient(static_cast<int>(i));
      undisturbed_.emplace_back(gradient.begin(), gradient.end());
    }
    EXPECT_THAT(model_->Step(MakeBatch(kRows, elements, kClasses, 1), 1),
                IsOk());
    const auto result =
        model_->Step(MakeBatch(kRows, elements, kClasses, 2), 2, {listener});
    EXPECT_THAT(result, IsOk());
    return result.value_or(CompiledModel::StepResult());
  }

  // "lanes_of_ref": two of "ref".
  const bool is_divided_ = absl::StartsWith(GetParam(), "lanes_of_");
  const std::string kind_ =
      std::string(absl::StripPrefix(GetParam(), "lanes_of_"));
  const std::unique_ptr<Backend> backend_ = MakeBackend(kind_);
  const std::unique_ptr<Backend> second_ = MakeBackend(kind_);
  std::unique_ptr<CompiledModel> model_;
  // The gradients of the step before anybody listened.
  std::vector<std::vector<float>> undisturbed_;
};

TEST_P(StepListenerTest, HearsOfEachGradientWhenItIsFinal) {
  Make(kManyUsesModel);
  Listener listener(model_.get());
  const CompiledModel::StepResult result = Run(&listener, kManyUsesElements);
  listener.ExpectAllFinal(undisturbed_);
  // From the last layer to the first, the shared weights after their last use;
  // averages come last.
  EXPECT_THAT(
      listener.order(),
      ElementsAre("logits/bias", "logits/weights", "middle/weights",
                  "first/weights", "norm/scale", "norm/shift", "conv/weights",
                  "norm/moving_mean", "norm/moving_variance"));
  EXPECT_LT(*listener.loss(), result.loss) << "the penalty comes later";
}

TEST_P(StepListenerTest, TheLossIsTheStepsWithoutAPenalty) {
  Make(R"pb(
    input_shape: [ 5 ]
    layer {
      name: "logits"
      type: "dense"
      attr { name: "units" i: 3 }
    }
    layer { name: "loss" type: "softmax_cross_entropy" }
  )pb");
  Listener listener(model_.get());
  const CompiledModel::StepResult result = Run(&listener, 5);
  EXPECT_EQ(listener.loss(), result.loss);
}

INSTANTIATE_TEST_SUITE_P(Backends, StepListenerTest,
                         testing::Values("ref", "cpu", "device_of_ref",
                                         "device_of_cpu", "lanes_of_ref",
                                         "lanes_of_cpu"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace muster
