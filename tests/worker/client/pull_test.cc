#include "worker/client/pull.h"

#include <array>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/delayed_link.h"
#include "tests/testing/fake_parameter_link.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/client/two_shard_fixture.h"
#include "worker/client/parameter_client.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// On shard 0 "first" shares its part with the beginning of "large"; shard 1 has
// "other".
constexpr std::array<int64_t, 3> kSizes = {10, 9 * kBlockElements, 700};
enum { kFirst, kLarge, kOther };
// A wait that is over is so in microseconds.
constexpr absl::Duration kLongEnough = absl::Milliseconds(100);

class PullTest : public TwoShardFixture {
 protected:
  // Every value on the shards is 1.
  void Connect(const FakeShard::Faults& faults) {
    TwoShardFixture::Connect(faults, kSizes, {0, 0, 1});
    for (auto& gradient : gradients_) gradient.assign(gradient.size(), 1);
    ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (const auto& shard : shards_) {
      auto link = std::make_unique<DelayedLink>(
          std::make_unique<FakeParameterLink>(shard.get()));
      links_.push_back(link.get());
      link->HoldPulls(true);
      links.push_back(std::move(link));
    }
    Reconnect(std::move(links));
  }
  std::unique_ptr<muster::Pull> Begin() {
    auto pull = client_->BeginPull(Into(values_));
    EXPECT_THAT(pull, IsOk());
    return pull.ok() ? *std::move(pull) : nullptr;
  }
  bool IsPulled(int tensor) const {
    return values_[tensor] == std::vector<float>(kSizes[tensor], 1.0f);
  }

  // The links of client_, each of which holds the answers to pulls.
  std::vector<DelayedLink*> links_;
};

TEST_F(PullTest, TheFirstTensorIsTheFirstThatIsThere) {
  Connect({});
  const auto pull = Begin();
  EXPECT_FALSE(pull->IsReady(kFirst));
  links_[0]->ReleasePull();
  EXPECT_TRUE(pull->IsReady(kFirst));
  EXPECT_THAT(pull->Await(kFirst), IsOk());
  EXPECT_TRUE(IsPulled(kFirst));
  EXPECT_FALSE(pull->IsReady(kLarge));
  EXPECT_FALSE(pull->IsReady(kOther));
  links_[1]->ReleasePull();
  EXPECT_TRUE(pull->IsReady(kOther));
  EXPECT_TRUE(IsPulled(kOther));
  links_[0]->ReleasePull();
  EXPECT_FALSE(pull->IsReady(kLarge));
  links_[0]->ReleasePull();
  EXPECT_TRUE(pull->IsReady(kLarge));
  EXPECT_TRUE(IsPulled(kLarge));
  EXPECT_THAT(pull->Finish(), IsOk());
}

TEST_F(PullTest, AwaitWaitsForItsTensorOnly) {
  Connect({});
  const auto pull = Begin();
  absl::Notification there;
  std::thread waiter([&] {
    EXPECT_THAT(pull->Await(kFirst), IsOk());
    there.Notify();
  });
  links_[1]->ReleasePull();
  EXPECT_FALSE(there.WaitForNotificationWithTimeout(kLongEnough));
  links_[0]->ReleasePull();
  waiter.join();
  links_[0]->HoldPulls(false);
  EXPECT_THAT(pull->Finish(), IsOk());
}

TEST_F(PullTest, TellsWhatAndWhenItWas) {
  Connect({});
  const auto pull = Begin();
  const absl::Time begun = clock_.Now();
  for (DelayedLink* const link : links_) link->HoldPulls(false);
  ASSERT_THAT(pull->Finish(), IsOk());
  EXPECT_LE(begun, pull->ended_at());
  EXPECT_THAT(pull->versions()->parts,
              ElementsAre(std::vector<int64_t>(3, 0), std::vector<int64_t>{0}));
}

// The gradient of what was pulled before another pull.
TEST_F(PullTest, APushTellsTheVersionOfTheValuesThatItIsOf) {
  Connect({});
  for (DelayedLink* const link : links_) link->HoldPulls(false);
  const auto old = Begin();
  ASSERT_THAT(old->Finish(), IsOk());
  ASSERT_THAT(client_->PushAndWait(1, Views(gradients_)), IsOk());
  const auto next = Begin();
  ASSERT_THAT(next->Finish(), IsOk());
  const auto stale = client_->BeginPush(2, /*round=*/0, Views(gradients_),
                                        /*into=*/{}, old->versions());
  ASSERT_THAT(stale, IsOk());
  auto outcome = (*stale)->Finish();
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->max_staleness, 1);
  EXPECT_THAT(outcome->pulled_versions, ElementsAre(0, 0));
  const auto pushed = client_->BeginPush(3, /*round=*/0, Views(gradients_),
                                         /*into=*/{}, next->versions());
  ASSERT_THAT(pushed, IsOk());
  outcome = (*pushed)->Finish();
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->max_staleness, 1) << "it was pulled before step 2";
  EXPECT_THAT(outcome->pulled_versions, ElementsAre(1, 1));
}

TEST_F(PullTest, VersionsOfAnotherEpochAreNoGood) {
  Connect({});
  for (DelayedLink* const link : links_) link->HoldPulls(false);
  const auto pull = Begin();
  ASSERT_THAT(pull->Finish(), IsOk());
  client_->SetEpoch(2, {11, 12});
  EXPECT_THAT(client_->BeginPush(1, /*round=*/0, Views(gradients_), /*into=*/{},
                                 pull->versions()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(PullTest, AFailureEndsEveryWait) {
  Connect({});
  shards_[1]->FailWith(FencedError("epoch 1"));
  const auto pull = Begin();
  std::vector<std::thread> waiters;
  for (const int tensor : {kFirst, kLarge, kOther}) {
    waiters.emplace_back([&pull, tensor] {
      EXPECT_THAT(pull->Await(tensor),
                  StatusIs(absl::StatusCode::kAborted, HasSubstr("pull: ")));
    });
  }
  links_[1]->ReleasePull();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_THAT(pull->Finish(), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(PullTest, WhatIsThereCanBeUsedAfterAFailure) {
  Connect({});
  shards_[1]->FailWith(FencedError("epoch 1"));
  const auto pull = Begin();
  links_[0]->ReleasePull();
  links_[1]->ReleasePull();
  EXPECT_THAT(pull->Await(kFirst), IsOk());
  EXPECT_THAT(pull->Await(kLarge), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(PullTest, GivenUpItWritesNothingMore) {
  Connect({});
  auto pull = Begin();
  links_[0]->ReleasePull();
  pull.reset();
  for (DelayedLink* const link : links_) link->HoldPulls(false);
  EXPECT_TRUE(IsPulled(kFirst));
  EXPECT_EQ(values_[kOther], std::vector<float>(kSizes[kOther], 0.0f));
}

TEST_F(PullTest, ArrivesOverALossyNetwork) {
  FakeShard::Faults faults;
  faults.seed = 20260301;
  faults.lost_requests = 20;
  faults.lost_answers = 20;
  Connect(faults);
  for (DelayedLink* const link : links_) link->HoldPulls(false);
  for (int i = 0; i < 20; ++i) {
    for (auto& values : values_) values.assign(values.size(), -1);
    const auto pull = Begin();
    for (const int tensor : {kFirst, kLarge, kOther}) {
      ASSERT_THAT(pull->Await(tensor), IsOk());
      ASSERT_TRUE(IsPulled(tensor));
    }
  }
}

}  // namespace
}  // namespace muster
