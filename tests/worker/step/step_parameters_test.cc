#include "worker/step/step_parameters.h"

#include <memory>
#include <thread>
#include <vector>

#include "common/rpc/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/step/tiny_model.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kClasses = 8;
enum { kWeights, kBias };

class StepParametersTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ASSERT_THAT(tiny_.Load(std::vector<float>(kClasses, 3.0f)), IsOk());
    Make(GetParam());
  }
  void Make(bool ahead) {
    StepParameters::Options options;
    options.client = tiny_.client();
    options.clock = tiny_.clock();
    options.values = {tiny_.model()->parameter(kWeights),
                      tiny_.model()->parameter(kBias)};
    options.ahead = ahead;
    parameters_ = std::make_unique<StepParameters>(options);
  }
  absl::Status Computed(const absl::Status& computed) {
    return parameters_->OnComputed(computed, &times_);
  }
  float bias() { return tiny_.model()->parameter(kBias)[0]; }

  // Each tensor is a part.
  TinyModel tiny_{kClasses, /*batch_size=*/1, CompileOptions::Mode::kTrain,
                  /*max_part_bytes=*/4};
  std::unique_ptr<StepParameters> parameters_;
  StepTimes times_;
};

TEST_P(StepParametersTest, AParameterIsThereWhenItIsUsed) {
  tiny_.link().HoldPulls(true);
  ASSERT_THAT(parameters_->Begin({}), IsOk());
  EXPECT_EQ(bias(), 0);
  tiny_.link().ReleasePull();
  EXPECT_THAT(parameters_->BeforeUse(kWeights), IsOk());
  tiny_.link().ReleasePull();
  EXPECT_THAT(parameters_->BeforeUse(kBias), IsOk());
  EXPECT_EQ(bias(), 3);
  EXPECT_THAT(Computed(absl::OkStatus()), IsOk());
  EXPECT_NE(parameters_->versions(), nullptr);
  EXPECT_LE(times_.pull_begun, times_.pulled);
  EXPECT_THAT(times_.waits, SizeIs(0));
}

TEST_P(StepParametersTest, SeveralTowersWaitForOneCopy) {
  tiny_.link().HoldPulls(true);
  ASSERT_THAT(parameters_->Begin({}), IsOk());
  std::vector<std::thread> towers;
  for (int i = 0; i < 3; ++i) {
    towers.emplace_back([this] {
      for (const int parameter : {kWeights, kBias}) {
        EXPECT_THAT(parameters_->BeforeUse(parameter), IsOk());
      }
      EXPECT_EQ(bias(), 3);
    });
  }
  tiny_.link().ReleasePull();
  tiny_.link().ReleasePull();
  for (std::thread& tower : towers) tower.join();
  EXPECT_THAT(parameters_->Finish(), IsOk());
}

TEST_P(StepParametersTest, TellsWhoHasWaited) {
  tiny_.link().HoldPulls(true);
  ASSERT_THAT(parameters_->Begin({}), IsOk());
  const int waits_before = tiny_.clock()->waits();
  std::thread tower(
      [this] { EXPECT_THAT(parameters_->BeforeUse(kBias), IsOk()); });
  tiny_.clock()->AwaitWaits(waits_before + 1);
  const absl::Time waited = tiny_.clock()->Now();
  // The answer to the weights' part, then the bias'.
  tiny_.link().ReleasePull();
  tiny_.link().ReleasePull();
  tower.join();
  ASSERT_THAT(Computed(absl::OkStatus()), IsOk());
  const std::vector<ParameterWait>& waits = times_.waits;
  ASSERT_THAT(waits, SizeIs(1));
  EXPECT_EQ(waits[0].tensor, kBias);
  EXPECT_LE(waits[0].from, waited);
  EXPECT_GE(waits[0].until, waited);
}

TEST_P(StepParametersTest, AFailedPullEndsEveryUse) {
  tiny_.shard().FailWith(FencedError("epoch 1"));
  ASSERT_THAT(parameters_->Begin({}), IsOk());
  EXPECT_THAT(parameters_->BeforeUse(kBias),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("pull: ")));
  EXPECT_THAT(Computed(absl::InternalError("tower 0: pull")),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(parameters_->Finish(), StatusIs(absl::StatusCode::kAborted));
  tiny_.shard().FailWith(absl::OkStatus());
  ASSERT_THAT(parameters_->Begin({}), IsOk());
  EXPECT_THAT(Computed(absl::InternalError("tower 0: not the pull")),
              StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(Computed(absl::OkStatus()), IsOk());
  EXPECT_EQ(bias(), 3);
}

INSTANTIATE_TEST_SUITE_P(Memory, StepParametersTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Ahead" : "InPlace";
                         });

// Each push brings a bias that is larger by 1.
class BringTest : public StepParametersTest {
 protected:
  std::shared_ptr<const PulledVersions> Push(int64_t step) {
    const std::vector<float> weights(2 * kClasses, 0.0f);
    const std::vector<float> bias(kClasses, 1.0f);
    const auto outcome =
        tiny_.client()->PushAndWait(step,
                                    {ViewOf(absl::MakeConstSpan(weights)),
                                     ViewOf(absl::MakeConstSpan(bias))},
                                    /*round=*/0, parameters_->into());
    EXPECT_THAT(outcome, IsOk());
    return outcome.ok() ? outcome->new_versions : nullptr;
  }
  void BeginAndFinish() {
    ASSERT_THAT(parameters_->Begin({}), IsOk());
    ASSERT_THAT(Computed(absl::OkStatus()), IsOk());
  }
};

TEST_P(BringTest, ThePushBringsTheValuesOfTheNextStep) {
  BeginAndFinish();
  const auto versions = Push(1);
  parameters_->Bring(versions);
  const int64_t pulls = tiny_.shard().pulls();
  BeginAndFinish();
  EXPECT_EQ(bias(), 4);
  EXPECT_EQ(parameters_->versions(), versions);
  EXPECT_EQ(times_.pull_begun, times_.pulled);
  EXPECT_EQ(tiny_.shard().pulls(), pulls);
  // Once: after a step that was not pushed others are wanted.
  BeginAndFinish();
  EXPECT_GT(tiny_.shard().pulls(), pulls);
}

TEST_P(BringTest, WhatIsDroppedIsPulled) {
  BeginAndFinish();
  parameters_->Bring(Push(1));
  parameters_->Drop();
  const int64_t pulls = tiny_.shard().pulls();
  BeginAndFinish();
  EXPECT_GT(tiny_.shard().pulls(), pulls);
  EXPECT_EQ(bias(), 4);
}

INSTANTIATE_TEST_SUITE_P(Memory, BringTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Ahead" : "InPlace";
                         });

class AheadTest : public BringTest {};

TEST_P(AheadTest, WhatAPushBringsDisturbsNobody) {
  BeginAndFinish();
  const auto before = parameters_->versions();
  const auto versions = Push(1);
  parameters_->Bring(versions);
  EXPECT_EQ(bias(), 3);
  EXPECT_EQ(parameters_->versions(), before);
  parameters_->BeginWithThoseAtHand();
  EXPECT_EQ(bias(), 4);
  EXPECT_EQ(parameters_->versions(), versions);
}

TEST_P(AheadTest, WithoutNewOnesTheOldOnesAreAtHand) {
  BeginAndFinish();
  const auto before = parameters_->versions();
  parameters_->BeginWithThoseAtHand();
  EXPECT_THAT(parameters_->BeforeUse(kBias), IsOk());
  ASSERT_THAT(parameters_->Finish(), IsOk());
  EXPECT_EQ(parameters_->versions(), before);
}

INSTANTIATE_TEST_SUITE_P(Ahead, AheadTest, ::testing::Values(true));

}  // namespace
}  // namespace muster
