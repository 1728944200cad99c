#include "worker/step/in_place_parameters.h"

#include <memory>
#include <string>
#include <vector>

#include "common/tensor/aligned_buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/step/tiny_model.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kClasses = 8;
// The weights of two inputs, and the bias; aligned by their sizes.
constexpr int64_t kElements = 3 * kClasses;
enum { kWeights, kBias };

class InPlaceParametersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(tiny_.Load(std::vector<float>(kClasses, 3.0f)), IsOk());
    Use(InPlaceOrder::kNone);
  }
  void Use(InPlaceOrder order) {
    StepParameters::Options options;
    options.client = tiny_.client();
    options.clock = tiny_.clock();
    options.values = {tiny_.model()->parameter(kWeights),
                      tiny_.model()->parameter(kBias)};
    parameters_ = std::make_unique<InPlaceParameters>(
        options, order, tiny_.towers(), said_.reporter());
  }
  absl::Status BeginAndFinish() {
    const absl::Status begun = parameters_->Begin({});
    return begun.ok() ? parameters_->Finish() : begun;
  }
  // Where a step reads the bias.
  const float* bias() { return tiny_.model()->read_parameter(kBias).data(); }
  const float* own_bias() { return tiny_.model()->parameter(kBias).data(); }

  TinyModel tiny_{kClasses, /*batch_size=*/1, CompileOptions::Mode::kTrain};
  std::unique_ptr<InPlaceParameters> parameters_;
  ReportedLines said_;
};

TEST_F(InPlaceParametersTest, AreReadWhereTheShardKeepsThem) {
  const auto memory =
      std::make_shared<AlignedBuffer>(kElements * sizeof(float));
  tiny_.link().MapTo(std::shared_ptr<const char>(memory, memory->data()));
  ASSERT_THAT(BeginAndFinish(), IsOk());
  EXPECT_EQ(bias(), memory->as<float>() + 2 * kClasses);
  EXPECT_NE(parameters_->versions(), nullptr);
  EXPECT_THAT(parameters_->into(), IsEmpty());
  EXPECT_EQ(parameters_->received_bytes(), 0);
  EXPECT_THAT(said_.lines(), IsEmpty());
}

TEST_F(InPlaceParametersTest, ByRoundAStepWaitsForThemAndTheyAreNotCopied) {
  Use(InPlaceOrder::kByRound);
  const auto memory =
      std::make_shared<AlignedBuffer>(kElements * sizeof(float));
  tiny_.link().MapTo(std::shared_ptr<const char>(memory, memory->data()));
  StepToken token;
  token.set_round(1);
  ASSERT_THAT(parameters_->Begin(token), IsOk());
  ASSERT_THAT(parameters_->BeforeUse(kBias), IsOk());
  EXPECT_EQ(tiny_.shard().round(), 1) << "nobody asked with the token";
  ASSERT_THAT(parameters_->Finish(), IsOk());
  EXPECT_EQ(bias(), memory->as<float>() + 2 * kClasses);
  EXPECT_EQ(*own_bias(), 0);
  EXPECT_EQ(parameters_->received_bytes(), kElements * sizeof(float));
}

TEST_F(InPlaceParametersTest, ArePulledWhereTheyCannotBeMapped) {
  for (int epoch = 1; epoch <= 2; ++epoch) {
    parameters_->Drop();
    ASSERT_THAT(BeginAndFinish(), IsOk());
    EXPECT_EQ(bias(), own_bias());
    EXPECT_EQ(*bias(), 3);
    EXPECT_THAT(parameters_->into(), SizeIs(2));
  }
  EXPECT_THAT(said_.lines(),
              ElementsAre(HasSubstr("IN_PLACE is not possible")));
}

TEST_F(InPlaceParametersTest, ThePlaceIsChosenOnceAnEpoch) {
  ASSERT_THAT(BeginAndFinish(), IsOk());
  const auto memory =
      std::make_shared<AlignedBuffer>(kElements * sizeof(float));
  tiny_.link().MapTo(std::shared_ptr<const char>(memory, memory->data()));
  ASSERT_THAT(BeginAndFinish(), IsOk());
  EXPECT_EQ(bias(), own_bias());
  parameters_->Drop();
  ASSERT_THAT(BeginAndFinish(), IsOk());
  EXPECT_NE(bias(), own_bias());
  tiny_.link().MapTo(nullptr);
  parameters_->Drop();
  ASSERT_THAT(BeginAndFinish(), IsOk());
  EXPECT_EQ(bias(), own_bias());
}

}  // namespace
}  // namespace muster
