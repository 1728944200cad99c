#include "worker/program/program_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/worker/program/program_model.h"

namespace muster {
namespace {

using ::testing::Each;

class ProgramExchangeTest : public ::testing::Test {
 protected:
  void Make(const ReplicationSpec& replication) {
    TrainingSpec training;
    *training.mutable_replication() = replication;
    Make(training);
  }
  void Make(const TrainingSpec& training) {
    ASSERT_THAT(model_.Load(), IsOk());
    exchange_ = MakeProgramExchange(model_.client(), training, model_.values(),
                                    SystemClock());
  }
  // Pushes `gradient` to each value; returns how many pulls that took.
  int64_t Step(const StepToken& token, float gradient) {
    const int64_t pulls = model_.pulls();
    w_.assign(4, gradient);
    mean_.assign(3, gradient);
    exchange_->BeginStep(++step_, token);
    EXPECT_THAT(exchange_->Prepare({}, token), IsOk());
    StepTimes times;
    EXPECT_THAT(exchange_->OnComputed(absl::OkStatus(), &times), IsOk());
    exchange_->PushFrom({absl::MakeSpan(w_), absl::MakeSpan(mean_)});
    EXPECT_THAT(exchange_->Send(), IsOk());
    EXPECT_THAT(exchange_->Finish(), IsOk());
    exchange_->EndStep();
    return model_.pulls() - pulls;
  }

  // Whether the gradient of "w" leaves when it is heard of.
  bool HasLeftEarly(float gradient) {
    w_.assign(4, gradient);
    exchange_->BeginStep(++step_, {});
    EXPECT_THAT(exchange_->Prepare({}, {}), IsOk());
    exchange_->PushFrom({absl::MakeSpan(w_), absl::MakeSpan(mean_)});
    EXPECT_THAT(exchange_->OnForward(0), IsOk());
    exchange_->OnGradient(0);
    ComputedStep computed;
    exchange_->Describe(&computed);
    exchange_->EndStep();
    return computed.push_begun;
  }

  ProgramModel model_;
  std::unique_ptr<PsExchange> exchange_;

 private:
  int64_t step_ = 0;
  std::vector<float> w_;
  std::vector<float> mean_ = std::vector<float>(3);
};

TEST_F(ProgramExchangeTest, Asynchronous_APushBringsTheNextStepsValues) {
  ReplicationSpec replication;
  replication.mutable_async();
  Make(replication);
  EXPECT_EQ(Step({}, 2), 1);
  EXPECT_THAT(model_.w, Each(3));
  EXPECT_EQ(Step({}, 4), 0);
  EXPECT_THAT(model_.w, Each(7));
  EXPECT_THAT(model_.mean, Each(6));
}

TEST_F(ProgramExchangeTest, EarlyGradient_WaitsWhereHooksLookAtValues) {
  for (const bool looks : {false, true}) {
    TrainingSpec training;
    training.mutable_replication()->mutable_async();
    training.mutable_summary()->set_histograms_every_steps(looks ? 1 : 0);
    Make(training);
    EXPECT_EQ(HasLeftEarly(2), !looks);
    EXPECT_EQ(HasLeftEarly(std::numeric_limits<float>::quiet_NaN()), false);
    training.mutable_non_finite()->set_allow(true);
    Make(training);
    EXPECT_EQ(HasLeftEarly(std::numeric_limits<float>::quiet_NaN()), !looks);
  }
}

TEST_F(ProgramExchangeTest, Synchronous_EachStepPullsForItsRound) {
  ReplicationSpec replication;
  replication.mutable_sync();
  Make(replication);
  for (const int64_t round : {1, 2}) {
    StepToken token;
    token.set_round(round);
    EXPECT_EQ(Step(token, 2), 1);
    EXPECT_EQ(model_.shard().round(), round);
  }
  EXPECT_THAT(model_.w, Each(3)) << "as pulled for round 2";
}

TEST_F(ProgramExchangeTest, BoundedStaleness_BringsValuesThatWillServe) {
  ReplicationSpec replication;
  replication.mutable_bounded_staleness()->set_bound(1);
  Make(replication);
  StepToken token;
  token.set_values_until_clock(1);
  EXPECT_EQ(Step(token, 2), 1);
  token.set_clock(1);
  EXPECT_EQ(Step(token, 2), 0);
  token.set_clock(2);
  token.set_values_until_clock(2);
  EXPECT_EQ(Step(token, 2), 1) << "too old";
}

}  // namespace
}  // namespace muster
