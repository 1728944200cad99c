#include "worker/program/program_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/stopped_error.h"
#include "common/rows/row_ranges.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/program/program_model.h"
#include "tests/worker/step/grants.h"
#include "worker/hook/nan_guard.h"
#include "worker/program/program_exchange.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

using State = ProgramSteps::State;

constexpr int64_t kRows = 4;
constexpr absl::Duration kLong = absl::Minutes(5);
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The test is the program; the session's thread is one for each call.
class ProgramStepsTest : public ::testing::Test {
 protected:
  void SetUp() override { Make(); }
  void Make() {
    ASSERT_THAT(model_.Load(), IsOk());
    TrainingSpec training;
    training.mutable_replication()->mutable_async();
    exchange_ = MakeProgramExchange(model_.client(), training, model_.values(),
                                    SystemClock());
    ProgramSteps::Options options;
    options.exchange = exchange_.get();
    options.client = model_.client();
    options.clock = SystemClock();
    options.tensors.push_back({"w", {2, 2}, true, model_.w, {}});
    options.tensors.push_back({"mean", {3}, false, model_.mean, {}});
    steps_ = std::make_unique<ProgramSteps>(std::move(options));
    ASSERT_THAT(Enter(/*model_epoch=*/1, /*is_new=*/true), IsOk());
  }
  absl::Status Enter(int64_t model_epoch, bool is_new) {
    return steps_->Enter({model_epoch, {ProgramModel::kIncarnation}, is_new});
  }

  using Report = absl::StatusOr<StepReport>;
  std::future<Report> Begin(int64_t step) {
    return std::async(std::launch::async, [this, step] {
      return steps_->Run(step, GrantOf(step, kRows, token_),
                         [this](const ComputedStep& computed) {
                           return before_push_(computed);
                         });
    });
  }
  ProgramSteps::Offer AwaitOffer() {
    ProgramSteps::Offer offer;
    EXPECT_EQ(steps_->Await(kLong, &offer), State::kStep);
    return offer;
  }
  absl::Status Give(float gradient, ProgramSteps::Figures figures = {}) {
    w_.assign(4, gradient);
    mean_.assign(3, gradient);
    return steps_->Give({absl::MakeSpan(w_), absl::MakeSpan(mean_)}, figures);
  }
  // Takes a step, whose values are those of the shard.
  void AwaitNextValues() {
    before_push_ = [](const ComputedStep&) { return PushDecision::kPush; };
    auto report = Begin(2);
    AwaitOffer();
    EXPECT_EQ(model_.w, model_.OnShard("w"));
    EXPECT_EQ(model_.mean, model_.OnShard("mean"));
    EXPECT_THAT(Give(0), IsOk());
    EXPECT_THAT(report.get(), IsOk());
  }
  // Gives that of "w" alone.
  absl::Status GiveEarly(float gradient, ProgramSteps::Figures figures = {}) {
    early_.assign(4, gradient);
    return steps_->GiveEarly(0, absl::MakeSpan(early_), figures);
  }
  // Returns when "w" has this value on the shard.
  void AwaitOnShard(float value) {
    while (model_.OnShard("w") != std::vector<float>(4, value)) {
      std::this_thread::yield();
    }
  }
  // A whole step.
  Report Step(int64_t step, float gradient, ProgramSteps::Figures figures = {},
              ProgramSteps::Offer* offer = nullptr) {
    auto report = Begin(step);
    ProgramSteps::Offer offered = AwaitOffer();
    if (offer != nullptr) *offer = offered;
    EXPECT_THAT(Give(gradient, figures), IsOk());
    return report.get();
  }

  ProgramModel model_;
  std::unique_ptr<PsExchange> exchange_;
  std::unique_ptr<ProgramSteps> steps_;
  StepToken token_;
  StepRunner::BeforePush before_push_ = [](const ComputedStep&) {
    return PushDecision::kPush;
  };
  std::vector<float> w_;
  std::vector<float> mean_;
  std::vector<float> early_;
};

TEST_F(ProgramStepsTest, AnOfferStaysUntilItsGradientsAreGiven) {
  ProgramSteps::Offer offer;
  EXPECT_EQ(steps_->Await(absl::ZeroDuration(), &offer), State::kWaiting);
  auto report = Begin(1);
  for (int i = 0; i < 2; ++i) {
    offer = AwaitOffer();
    EXPECT_EQ(offer.step, 1);
    EXPECT_EQ(offer.model_epoch, 1);
    ASSERT_EQ(offer.leases.size(), 2);
    EXPECT_EQ(offer.leases[0], RowsOfStep(1, kRows));
    EXPECT_FALSE(offer.dropped) << "there is none before it";
  }
  ASSERT_THAT(Give(2), IsOk());
  EXPECT_EQ(steps_->Await(absl::ZeroDuration(), &offer), State::kWaiting);
  ASSERT_THAT(report.get(), IsOk());
}

TEST_F(ProgramStepsTest, ReportsTheFiguresAndTheRowsOfTheGrant) {
  ProgramSteps::Figures figures;
  figures.loss = 0.5;
  figures.examples = 3;
  figures.correct = 2;
  const Report report = Step(1, 2, figures);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->step, 1);
  EXPECT_EQ(report->rows, RowsOfStep(1, kRows));
  EXPECT_EQ(report->loss, 0.5);
  EXPECT_EQ(report->examples, 3);
  EXPECT_EQ(report->correct, 2);
  EXPECT_FALSE(report->abandoned);
  EXPECT_THAT(model_.OnShard("w"), Each(3));
  EXPECT_THAT(model_.OnShard("mean"), Each(2));
}

TEST_F(ProgramStepsTest, TimesFollowEachOther) {
  const Report report = Step(1, 2);
  ASSERT_THAT(report, IsOk());
  const StepTimes& times = report->times;
  EXPECT_EQ(times.begun, times.read);
  EXPECT_LE(times.begun, times.pull_begun);
  EXPECT_LE(times.pulled, times.compute_begun);
  EXPECT_LE(times.compute_begun, times.computed);
  EXPECT_LE(times.computed, times.decided);
  EXPECT_LE(times.decided, times.pushed);
  EXPECT_LE(times.pushed, times.ended);
}

TEST_F(ProgramStepsTest, ValuesAreThereBeforeTheOfferAndStayUntilGive) {
  auto report = Begin(1);
  AwaitOffer();
  EXPECT_THAT(model_.w, Each(1));
  EXPECT_THAT(model_.mean, Each(0));
  model_.w.assign(4, 9);
  AwaitOffer();
  EXPECT_THAT(model_.w, Each(9)) << "nobody has written there";
  ASSERT_THAT(Give(2), IsOk());
  ASSERT_THAT(report.get(), IsOk());
}

TEST_F(ProgramStepsTest, AnswersToThePushAreTheNextOffersValues) {
  ASSERT_THAT(Step(1, 2), IsOk());
  const int64_t pulls = model_.pulls();
  auto report = Begin(2);
  AwaitOffer();
  EXPECT_THAT(model_.w, Each(3));
  EXPECT_THAT(model_.mean, Each(2));
  EXPECT_EQ(model_.pulls(), pulls);
  ASSERT_THAT(Give(2), IsOk());
  ASSERT_THAT(report.get(), IsOk());
}

TEST_F(ProgramStepsTest, GradientsMayLieElsewhereInEachStep) {
  ASSERT_THAT(Step(1, 2), IsOk());
  std::vector<float> w(4, 4.0f);
  auto report = Begin(2);
  AwaitOffer();
  ASSERT_THAT(steps_->Give({absl::MakeSpan(w), absl::MakeSpan(mean_)}, {}),
              IsOk());
  ASSERT_THAT(report.get(), IsOk());
  EXPECT_THAT(model_.OnShard("w"), Each(7));
}

TEST_F(ProgramStepsTest, AnEarlyGradient_LeavesBeforeTheOthersAndOnce) {
  auto report = Begin(1);
  AwaitOffer();
  ASSERT_THAT(GiveEarly(2), IsOk());
  AwaitOnShard(3);
  EXPECT_THAT(model_.OnShard("mean"), Each(0));
  before_push_ = [this](const ComputedStep& computed) {
    EXPECT_TRUE(computed.push_begun);
    EXPECT_EQ(computed.tensors[0].gradient.data(), early_.data());
    return PushDecision::kPush;
  };
  ASSERT_THAT(Give(4), IsOk());
  ASSERT_THAT(report.get(), IsOk());
  EXPECT_THAT(model_.OnShard("w"), Each(3)) << "the one that was given early";
  EXPECT_THAT(model_.OnShard("mean"), Each(4));
  AwaitNextValues();
  EXPECT_THAT(model_.w, Each(3));
}

TEST_F(ProgramStepsTest, AllGradientsEarly_WaitForTheFigures) {
  auto report = Begin(1);
  AwaitOffer();
  mean_.assign(3, 2);
  ASSERT_THAT(GiveEarly(2), IsOk());
  ASSERT_THAT(steps_->GiveEarly(1, absl::MakeSpan(mean_), {}), IsOk());
  AwaitOnShard(3);
  ProgramSteps::Figures figures;
  figures.loss = 0.5;
  ASSERT_THAT(Give(2, figures), IsOk());
  const Report pushed = report.get();
  ASSERT_THAT(pushed, IsOk());
  EXPECT_EQ(pushed->loss, 0.5);
}

TEST_F(ProgramStepsTest, AnEarlyGradientThatIsNotFinite_WaitsForTheGuard) {
  before_push_ = [](const ComputedStep& computed) {
    EXPECT_FALSE(computed.push_begun);
    return PushDecision::kRefuse;
  };
  auto report = Begin(1);
  AwaitOffer();
  ASSERT_THAT(GiveEarly(kNan), IsOk());
  ASSERT_THAT(Give(2), IsOk());
  ASSERT_THAT(report.get(), IsOk());
  EXPECT_THAT(model_.OnShard("w"), Each(1));
}

TEST_F(ProgramStepsTest, AStepRefusedAfterAnEarlyGradient_PullsTheNextValues) {
  before_push_ = [](const ComputedStep&) { return PushDecision::kRefuse; };
  auto report = Begin(1);
  AwaitOffer();
  ASSERT_THAT(GiveEarly(2), IsOk());
  AwaitOnShard(3);
  ASSERT_THAT(Give(2), IsOk());
  ASSERT_THAT(report.get(), IsOk());
  EXPECT_THAT(model_.OnShard("mean"), Each(0));
  AwaitNextValues();
  EXPECT_THAT(model_.w, Each(3));
  EXPECT_THAT(model_.mean, Each(0));
}

TEST_F(ProgramStepsTest, AnEarlyGradient_IsResumedWithTheOthers) {
  auto begun = Begin(1);
  AwaitOffer();
  ASSERT_THAT(GiveEarly(2), IsOk());
  AwaitOnShard(3);
  model_.shard().FailWith(absl::UnavailableError("lost"));
  ASSERT_THAT(Give(2), IsOk());
  EXPECT_THAT(begun.get(), StatusIs(absl::StatusCode::kUnavailable));
  model_.shard().FailWith(absl::OkStatus());
  ASSERT_THAT(Enter(/*model_epoch=*/1, /*is_new=*/false), IsOk());
  ASSERT_THAT(steps_->Resume(), IsOk());
  EXPECT_THAT(model_.OnShard("w"), Each(3));
  EXPECT_THAT(model_.OnShard("mean"), Each(2));
}

TEST_F(ProgramStepsTest, EarlyFigures_AreThoseOfAllParts) {
  token_.mutable_counts()->set_steps(7);
  auto report = Begin(1);
  AwaitOffer();
  ProgramSteps::Figures figures;
  figures.examples = 3;
  figures.learning_rate_factor = 0.5;
  ASSERT_THAT(GiveEarly(2, figures), IsOk());
  AwaitOnShard(3);
  EXPECT_EQ(model_.shard().learning_rate_factor(), 0.5);
  const auto refused =
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("the first gradient of the step has left with 3 and "
                         "0.5"));
  figures.examples = 4;
  EXPECT_THAT(Give(2, figures), refused);
  figures.examples = 3;
  figures.learning_rate_factor = 1;
  EXPECT_THAT(Give(2, figures), refused);
  figures.learning_rate_factor = 0.5;
  ASSERT_THAT(Give(2, figures), IsOk());
  ASSERT_THAT(report.get(), IsOk());
  ASSERT_THAT(Step(2, 2), IsOk()) << "nothing of the step before is left";
  EXPECT_EQ(model_.shard().learning_rate_factor(), 0);
}

TEST_F(ProgramStepsTest, AnEarlyGradientThatCannotBe_IsRefusedByName) {
  EXPECT_THAT(GiveEarly(2), StatusIs(absl::StatusCode::kFailedPrecondition));
  auto report = Begin(1);
  AwaitOffer();
  ASSERT_THAT(GiveEarly(2), IsOk());
  EXPECT_THAT(GiveEarly(2), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("'w' was given before")));
  EXPECT_THAT(steps_->GiveEarly(1, absl::MakeSpan(early_), {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'mean' has 4 values; wanted 3")));
  EXPECT_THAT(steps_->GiveEarly(2, absl::MakeSpan(early_), {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tensor 2; wanted one from 0 to 1")));
  ASSERT_THAT(Give(2), IsOk());
  ASSERT_THAT(report.get(), IsOk());
}

TEST_F(ProgramStepsTest, StopWaiting_GivesUpWhatHasNotLeft) {
  auto begun = Begin(1);
  AwaitOffer();
  ASSERT_THAT(GiveEarly(2), IsOk());
  AwaitOnShard(3);
  steps_->StopWaiting();
  EXPECT_TRUE(IsStopped(begun.get().status()));
  EXPECT_THAT(GiveEarly(2), IsOk()) << "the program could not know";
  EXPECT_THAT(Give(2), IsOk());
  EXPECT_THAT(model_.OnShard("mean"), Each(0));
}

TEST_F(ProgramStepsTest, AFailedPush_IsResumedFromTheSameGradients) {
  auto begun = Begin(1);
  AwaitOffer();
  model_.shard().AnswerWith(absl::UnavailableError("lost"));
  ASSERT_THAT(Give(2), IsOk());
  EXPECT_THAT(begun.get(), StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_TRUE(steps_->may_resume());
  ProgramSteps::Offer offer;
  EXPECT_EQ(steps_->Await(absl::ZeroDuration(), &offer), State::kWaiting)
      << "the gradients are still read";
  model_.shard().AnswerWith(absl::OkStatus());
  ASSERT_THAT(Enter(/*model_epoch=*/1, /*is_new=*/false), IsOk());
  const Report report = steps_->Resume();
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->step, 1);
  EXPECT_EQ(report->rows, RowsOfStep(1, kRows));
  EXPECT_FALSE(steps_->may_resume());
  EXPECT_THAT(model_.OnShard("w"), Each(3)) << "once";
  EXPECT_EQ(model_.shard().duplicates(), 1);
}

TEST_F(ProgramStepsTest, AFailedPush_IsGivenUpWithItsEpochAndDropped) {
  auto begun = Begin(1);
  AwaitOffer();
  model_.shard().FailWith(absl::UnavailableError("lost"));
  ASSERT_THAT(Give(2), IsOk());
  EXPECT_THAT(begun.get(), StatusIs(absl::StatusCode::kUnavailable));
  model_.shard().FailWith(absl::OkStatus());
  ASSERT_THAT(Enter(/*model_epoch=*/2, /*is_new=*/true), IsOk());
  EXPECT_FALSE(steps_->may_resume());
  ProgramSteps::Offer offer;
  ASSERT_THAT(Step(2, 4, {}, &offer), IsOk());
  EXPECT_EQ(offer.model_epoch, 2);
  EXPECT_TRUE(offer.dropped);
  EXPECT_THAT(model_.OnShard("w"), Each(5)) << "without the step before";
}

TEST_F(ProgramStepsTest, AFailedPull_OffersNothing) {
  model_.shard().FailWith(absl::UnavailableError("lost"));
  EXPECT_THAT(Begin(1).get(), StatusIs(absl::StatusCode::kUnavailable));
  ProgramSteps::Offer offer;
  EXPECT_EQ(steps_->Await(absl::ZeroDuration(), &offer), State::kWaiting);
}

TEST_F(ProgramStepsTest, ARefusedStep_IsAbandonedAndTheNextOfferSaysDropped) {
  before_push_ = [](const ComputedStep&) { return PushDecision::kRefuse; };
  const Report refused = Step(1, 2);
  ASSERT_THAT(refused, IsOk());
  EXPECT_TRUE(refused->abandoned);
  EXPECT_TRUE(refused->skipped);
  EXPECT_THAT(model_.OnShard("w"), Each(1));
  before_push_ = [](const ComputedStep&) { return PushDecision::kPush; };
  ProgramSteps::Offer offer;
  ASSERT_THAT(Step(2, 2, {}, &offer), IsOk());
  EXPECT_TRUE(offer.dropped);
}

TEST_F(ProgramStepsTest, ACountedStep_IsDescribedByTheNextOffer) {
  ASSERT_THAT(Step(1, 2), IsOk());
  steps_->OnCounted(/*staleness=*/1.5, /*dropped=*/false, /*global_step=*/7);
  ProgramSteps::Offer offer;
  ASSERT_THAT(Step(2, 2, {}, &offer), IsOk());
  EXPECT_EQ(offer.staleness, 1.5);
  EXPECT_FALSE(offer.dropped);
  EXPECT_EQ(offer.global_step, 7);
}

TEST_F(ProgramStepsTest, HooksSeeTheProgramsTensorsAndFigures) {
  before_push_ = [this](const ComputedStep& computed) {
    EXPECT_EQ(computed.loss, 0.5);
    EXPECT_TRUE(computed.has_loss);
    EXPECT_EQ(computed.tensors[0].value.data(), model_.w.data());
    EXPECT_EQ(computed.tensors[1].gradient.data(), mean_.data());
    EXPECT_EQ(computed.towers.size(), 1);
    EXPECT_EQ(computed.towers[0].gradients[0].data(), w_.data());
    return PushDecision::kPush;
  };
  ProgramSteps::Figures figures;
  figures.loss = 0.5;
  ASSERT_THAT(Step(1, 2, figures), IsOk());
}

TEST_F(ProgramStepsTest, AStepWithoutALoss_IsNotCalledNonFinite) {
  NanGuard guard(NanGuard::Options{});
  before_push_ = [&](const ComputedStep& computed) {
    StepRecord record;
    record.loss = computed.loss;
    record.has_loss = computed.has_loss;
    record.tensors = computed.tensors;
    return guard.BeforePush(record);
  };
  ProgramSteps::Figures figures;
  figures.loss = kNan;
  const Report report = Step(1, 2, figures);
  ASSERT_THAT(report, IsOk());
  EXPECT_FALSE(report->abandoned);
  EXPECT_FALSE(report->has_loss);
}

TEST_F(ProgramStepsTest, StopWaiting_EndsTheRunThatWaitsAndAllLaterOnes) {
  auto begun = Begin(1);
  AwaitOffer();
  std::thread([this] { steps_->StopWaiting(); }).join();
  EXPECT_TRUE(IsStopped(begun.get().status()));
  EXPECT_THAT(Give(2), IsOk()) << "the program could not know";
  EXPECT_THAT(model_.OnShard("w"), Each(1));
  ProgramSteps::Offer offer;
  EXPECT_EQ(steps_->Await(absl::ZeroDuration(), &offer), State::kWaiting);
  EXPECT_THAT(Give(2), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(IsStopped(Begin(2).get().status()));
}

TEST_F(ProgramStepsTest, StopWaiting_LetsGivenGradientsThrough) {
  before_push_ = [this](const ComputedStep&) {
    steps_->StopWaiting();
    return PushDecision::kPush;
  };
  ASSERT_THAT(Step(1, 2), IsOk());
  EXPECT_THAT(model_.OnShard("w"), Each(3));
}

TEST_F(ProgramStepsTest, End_WakesTheProgramForGood) {
  std::thread session([this] { steps_->End(); });
  ProgramSteps::Offer offer;
  EXPECT_EQ(steps_->Await(kLong, &offer), State::kOver);
  EXPECT_EQ(steps_->Await(kLong, &offer), State::kOver);
  session.join();
  EXPECT_THAT(Give(2), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ProgramStepsTest, GiveWithoutAnOffer_IsRefused) {
  EXPECT_THAT(Give(2), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ProgramStepsTest, GiveOfWhatCannotBe_IsRefusedByNameAndTheOfferStays) {
  auto report = Begin(1);
  AwaitOffer();
  w_.assign(3, 2);
  mean_.assign(3, 2);
  const auto refused = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
  };
  EXPECT_THAT(steps_->Give({absl::MakeSpan(w_), absl::MakeSpan(mean_)}, {}),
              refused("'w' has 3 values; wanted 4, shape [2,2]"));
  EXPECT_THAT(steps_->Give({absl::MakeSpan(w_)}, {}),
              refused("1 gradients; wanted 2"));
  ProgramSteps::Figures figures;
  figures.examples = -1;
  EXPECT_THAT(Give(2, figures), refused("-1 examples"));
  figures.examples = (int64_t{1} << 31) + 1;
  EXPECT_THAT(Give(2, figures), refused("wanted 0 to 2147483648"));
  figures.examples = 2;
  figures.correct = 3;
  EXPECT_THAT(Give(2, figures), refused("3 right answers of 2"));
  figures.correct = -1;
  for (const double factor :
       {0.0, -1.0, 2e6, kNan, std::numeric_limits<double>::infinity()}) {
    figures.learning_rate_factor = factor;
    EXPECT_THAT(Give(2, figures), refused("factor of the learning rate"));
  }
  AwaitOffer();
  ASSERT_THAT(Give(2), IsOk());
  ASSERT_THAT(report.get(), IsOk());
}

TEST_F(ProgramStepsTest, LearningRateFactor_IsMultipliedWithTheTokens) {
  ProgramSteps::Figures figures;
  figures.learning_rate_factor = 8;
  ASSERT_THAT(Step(1, 2, figures), IsOk());
  EXPECT_EQ(model_.shard().learning_rate_factor(), 8);
  token_.set_learning_rate_factor(0.25);
  ASSERT_THAT(Step(2, 2, figures), IsOk());
  EXPECT_EQ(model_.shard().learning_rate_factor(), 2);
  ASSERT_THAT(Step(3, 2), IsOk());
  EXPECT_EQ(model_.shard().learning_rate_factor(), 0.25);
  figures.learning_rate_factor = 5e-324;
  ASSERT_THAT(Step(4, 2, figures), IsOk());
  EXPECT_GT(model_.shard().learning_rate_factor(), 0) << "0 stands for 1";
}

TEST_F(ProgramStepsTest, LearningRateFactorOfARound_GoesWithThePush) {
  token_.set_round(1);
  ProgramSteps::Figures figures;
  figures.learning_rate_factor = 0.5;
  const Report pushed = Step(1, 2, figures);
  ASSERT_THAT(pushed, IsOk());
  EXPECT_EQ(pushed->round, 1);
  EXPECT_EQ(model_.shard().learning_rate_factor(), 0.5);
}

}  // namespace
}  // namespace muster
