#include "worker/client/parameter_client.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_parameter_link.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/client/two_shard_fixture.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// A way on which other parts than before become the best.
class ChangingLink : public FakeParameterLink {
 public:
  ChangingLink(FakeShard* shard, const int64_t* best)
      : FakeParameterLink(shard), best_(best) {}

  int64_t best_part_bytes() const override { return *best_; }

 private:
  const int64_t* const best_;
};

// A model of a small and a large tensor on shard 0 and 1, and one more.
class ParameterClientTest : public TwoShardFixture {
 protected:
  static constexpr int64_t kLarge = 9 * kBlockElements + 5;

  void Connect(const FakeShard::Faults& faults) {
    TwoShardFixture::Connect(faults, {10, kLarge, 700}, {0, 1, 0});
    for (int i = 0; i < 3; ++i) {
      gradients_[i].assign(gradients_[i].size(), static_cast<float>(i + 1));
    }
  }
};

TEST_F(ParameterClientTest, PullsWhatWasLoadedAndPushed) {
  Connect({});
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  ASSERT_THAT(Pull(), IsOk());
  EXPECT_EQ(values_, gradients_);
  const absl::StatusOr<PushResult> outcome =
      client_->PushAndWait(1, Views(gradients_));
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->retries, 0);
  EXPECT_EQ(outcome->pulled_versions, std::vector<int64_t>({0, 0}));
  ASSERT_THAT(Pull(), IsOk());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(values_[i],
              std::vector<float>(values_[i].size(), 2.0f * (i + 1)));
  }
}

TEST_F(ParameterClientTest, AppliesEachPushOnceOverALossyNetwork) {
  FakeShard::Faults faults;
  faults.seed = 20260102;
  faults.lost_requests = 15;
  faults.lost_answers = 15;
  faults.duplicates = 15;
  Connect(faults);
  for (auto& gradient : gradients_) gradient.assign(gradient.size(), 0.0f);
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  for (auto& gradient : gradients_) gradient.assign(gradient.size(), 1.0f);
  constexpr int kSteps = 20;
  for (int step = 1; step <= kSteps; ++step) {
    ASSERT_THAT(Pull(), IsOk());
    ASSERT_THAT(client_->PushAndWait(step, Views(gradients_)), IsOk());
  }
  ASSERT_THAT(Pull(), IsOk());
  for (const auto& values : values_) {
    EXPECT_EQ(values, std::vector<float>(values.size(), kSteps));
  }
  EXPECT_GT(shards_[1]->duplicates(), 0);
}

TEST_F(ParameterClientTest, APushBringsTheNewValues) {
  FakeShard::Faults faults;
  faults.seed = 20261122;
  faults.lost_requests = 15;
  faults.lost_answers = 15;
  faults.duplicates = 15;
  Connect(faults);
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  ASSERT_THAT(Pull(), IsOk());
  for (int step = 1; step <= 20; ++step) {
    const auto outcome = client_->PushAndWait(step, Views(gradients_),
                                              /*round=*/0, Into(values_));
    ASSERT_THAT(outcome, IsOk());
    // Nobody else pushes: each gradient is of the values before it.
    EXPECT_EQ(outcome->max_staleness, 0);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(values_[i],
                std::vector<float>(values_[i].size(), (step + 1.0f) * (i + 1)));
    }
  }
}

TEST_F(ParameterClientTest, APushTellsWhichValuesItHasBrought) {
  Connect({});
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  ASSERT_THAT(Pull(), IsOk());
  auto outcome = client_->PushAndWait(1, Views(gradients_));
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->new_versions, nullptr);
  outcome =
      client_->PushAndWait(2, Views(gradients_), /*round=*/0, Into(values_));
  ASSERT_THAT(outcome, IsOk());
  ASSERT_NE(outcome->new_versions, nullptr);
  for (const std::vector<int64_t>& shard : outcome->new_versions->parts) {
    EXPECT_EQ(shard, std::vector<int64_t>(shard.size(), 2));
  }
}

TEST_F(ParameterClientTest, PartsSuitTheLinksAndStayThroughAnEpoch) {
  int64_t best = kMaxPartBytes;
  Connect({});
  std::vector<std::unique_ptr<ParameterLink>> links;
  for (const auto& shard : shards_) {
    links.push_back(std::make_unique<ChangingLink>(shard.get(), &best));
  }
  Reconnect(std::move(links));
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  // How many runs of tensors a push of the step has sent.
  const auto push = [this](int64_t step) {
    EXPECT_THAT(Pull(), IsOk());
    return client_->PushAndWait(step, Views(gradients_)).value().sends.size();
  };
  EXPECT_EQ(push(1), 2 + 3);
  best = kBlockElements * 4;
  client_->SetEpoch(1, {11, 12});
  EXPECT_EQ(push(2), 2 + 3);
  client_->SetEpoch(2, {11, 12});
  EXPECT_EQ(push(3), 2 + 10);
  best = kMaxPartBytes;
  client_->SetEpoch(2, {11, 13});
  EXPECT_EQ(push(4), 2 + 3);
}

TEST_F(ParameterClientTest, ATokenGoesToEveryShard) {
  Connect({});
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  ASSERT_THAT(Pull(/*round=*/3), IsOk());
  EXPECT_EQ(shards_[0]->round(), 3);
  EXPECT_EQ(shards_[1]->round(), 3);
}

TEST_F(ParameterClientTest, OneLateShardMakesAPushLate) {
  Connect({});
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  ASSERT_THAT(Pull(/*round=*/3), IsOk());
  shards_[1]->AdvanceToRound(4);
  const auto late = client_->PushAndWait(1, Views(gradients_), /*round=*/3);
  ASSERT_THAT(late, IsOk());
  EXPECT_TRUE(late->late);
  ASSERT_THAT(Pull(/*round=*/4), IsOk());
  const auto fresh = client_->PushAndWait(2, Views(gradients_), /*round=*/4);
  ASSERT_THAT(fresh, IsOk());
  EXPECT_FALSE(fresh->late);
}

TEST_F(ParameterClientTest, FencedIsAborted) {
  Connect({});
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  ASSERT_THAT(Pull(), IsOk());
  shards_[1]->FailWith(FencedError("epoch 2"));
  EXPECT_THAT(client_->PushAndWait(1, Views(gradients_)),
              StatusIs(absl::StatusCode::kAborted,
                       "push of step 1: /job:ps/task:1: fenced: epoch 2"));
}

TEST_F(ParameterClientTest, GivesUpNamingThePs) {
  options_.transfer.give_up_after = absl::Milliseconds(20);
  Connect({});
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  shards_[0]->FailWith(absl::UnavailableError("connection refused"));
  EXPECT_THAT(Pull(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("/job:ps/task:0: connection refused; given "
                                 "up after")));
}

// Shard 0 has all of it; shard 1 has a part, and cannot say so.
TEST_F(ParameterClientTest, AResumedPushIsAppliedOnceByEachShard) {
  options_.transfer.give_up_after = absl::ZeroDuration();
  Connect({});
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  ASSERT_THAT(Pull(), IsOk());
  shards_[1]->AnswerWith(absl::UnavailableError("reset"));
  auto push = client_->BeginPush(1, /*round=*/0, Views(gradients_));
  ASSERT_THAT(push, IsOk());
  (*push)->Release(0);
  (*push)->Release(2);
  for (int tries = 0; tries < 2; ++tries) {
    EXPECT_THAT((*push)->Finish(), StatusIs(absl::StatusCode::kUnavailable,
                                            HasSubstr("/job:ps/task:1")));
    ASSERT_TRUE((*push)->may_resume());
    client_->SetEpoch(1, {11, 12});
    if (tries == 1) shards_[1]->AnswerWith(absl::OkStatus());
    client_->Resume(push->get());
  }
  const auto result = (*push)->Finish();
  ASSERT_THAT(result, IsOk());
  EXPECT_FALSE((*push)->may_resume());
  EXPECT_EQ(result->duplicate_parts, 1);
  EXPECT_EQ(shards_[0]->duplicates(), 0) << "what it has is not sent again";
  EXPECT_EQ(result->sends.size(), 2 + 3);
  ASSERT_THAT(Pull(), IsOk());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(values_[i],
              std::vector<float>(values_[i].size(), 2.0f * (i + 1)));
  }
}

TEST_F(ParameterClientTest, AnotherEpochRefusesTheRestOfAPush) {
  options_.transfer.give_up_after = absl::ZeroDuration();
  Connect({});
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  ASSERT_THAT(Pull(), IsOk());
  shards_[1]->FailWith(absl::UnavailableError("reset"));
  auto push = client_->BeginPush(1, /*round=*/0, Views(gradients_));
  ASSERT_THAT(push, IsOk());
  EXPECT_THAT((*push)->Finish(), StatusIs(absl::StatusCode::kUnavailable));
  shards_[1]->FailWith(FencedError("epoch 2"));
  client_->Resume(push->get());
  EXPECT_THAT((*push)->Finish(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_FALSE((*push)->may_resume());
}

TEST_F(ParameterClientTest, RefusesAPushBeforeThePullOfAnEpoch) {
  Connect({});
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  ASSERT_THAT(Pull(), IsOk());
  client_->SetEpoch(2, {11, 12});
  EXPECT_THAT(client_->PushAndWait(1, Views(gradients_)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ParameterClientTest, RefusesViewsOfAnotherSize) {
  Connect({});
  gradients_[2].pop_back();
  EXPECT_THAT(client_->PushAndWait(1, Views(gradients_)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'tensor2' has 2800 bytes, got 2796")));
}

TEST_F(ParameterClientTest, ClosingEndsWhatIsOnItsWay) {
  Connect({});
  ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
  shards_[0]->FailWith(absl::UnavailableError("gone"));
  absl::Status outcome;
  client_->PullThen(Into(values_), /*token=*/{},
                    [&](const absl::Status& status) { outcome = status; });
  client_.reset();
  EXPECT_THAT(outcome, StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace muster
