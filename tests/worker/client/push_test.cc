#include "worker/client/push.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_parameter_link.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/client/two_shard_fixture.h"
#include "worker/client/parameter_client.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Shard 0: the end of "large" shares its last part with "small". Shard 1:
// "other".
constexpr std::array<int64_t, 3> kSizes = {9 * kBlockElements, 10, 700};
enum { kLarge, kSmall, kOther };
// A push that does not wait is gone in microseconds.
constexpr absl::Duration kLongEnough = absl::Milliseconds(100);

class PushTest : public TwoShardFixture {
 protected:
  void Connect(const FakeShard::Faults& faults) {
    TwoShardFixture::Connect(faults, kSizes, {0, 0, 1});
    ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
    ASSERT_THAT(Pull(), IsOk());
  }
  std::unique_ptr<Push> Begin(int64_t step) {
    auto push = client_->BeginPush(step, /*round=*/0, Views(gradients_));
    EXPECT_THAT(push, IsOk());
    return push.ok() ? *std::move(push) : nullptr;
  }
  void Compute(int tensor, float value) {
    gradients_[tensor].assign(kSizes[tensor], value);
  }
  // The values at the shard that are `value`.
  int64_t Count(int tensor, float value) const {
    const std::string bytes =
        shards_[tensor == kOther]->values(absl::StrCat("tensor", tensor));
    const auto* const values = reinterpret_cast<const float*>(bytes.data());
    return std::count(values, values + bytes.size() / sizeof(float), value);
  }
};

TEST_F(PushTest, APartLeavesWhenAllItsTensorsAreReleased) {
  Connect({});
  const auto push = Begin(1);
  EXPECT_FALSE(push->has_left());
  Compute(kOther, 3);
  push->Release(kOther);
  EXPECT_TRUE(push->has_left());
  EXPECT_EQ(Count(kOther, 3), kSizes[kOther]);
  Compute(kLarge, 1);
  push->Release(kLarge);
  // 9 blocks in parts of 4: the last one's part waits for "small".
  EXPECT_EQ(Count(kLarge, 1), 8 * kBlockElements);
  Compute(kSmall, 2);
  push->Release(kSmall);
  EXPECT_EQ(Count(kLarge, 1), kSizes[kLarge]);
  EXPECT_EQ(Count(kSmall, 2), kSizes[kSmall]);
  const auto outcome = push->Finish();
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->retries, 0);
  EXPECT_EQ(outcome->pulled_versions, std::vector<int64_t>({0, 0}));
}

TEST_F(PushTest, FinishSendsWhatWasNotReleased) {
  Connect({});
  const auto push = Begin(1);
  for (int i = 0; i < 3; ++i) Compute(i, 1);
  push->Release(kLarge);
  ASSERT_THAT(push->Finish(), IsOk());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Count(i, 1), kSizes[i]);
}

TEST_F(PushTest, TellsWhenEachSliceWasOnItsWay) {
  Connect({});
  const auto push = Begin(1);
  const absl::Time begun = clock_.Now();
  push->Release(kLarge);
  const absl::Time released = clock_.Now();
  const auto outcome = push->Finish();
  ASSERT_THAT(outcome, IsOk());
  // Three parts of "large", of which the last has "small", and "other".
  ASSERT_THAT(outcome->sends, SizeIs(5));
  int64_t early = 0;
  int64_t bytes = 0;
  for (const SliceSend& send : outcome->sends) {
    EXPECT_LE(begun, send.left);
    EXPECT_LE(send.left, send.acknowledged);
    bytes += send.bytes;
    if (send.acknowledged <= released) early += send.bytes;
  }
  EXPECT_EQ(bytes, outcome->float32_bytes);
  EXPECT_EQ(early, 8 * kBlockElements * sizeof(float));
}

// All-reduce: what the worker exchanges with its own process' shard goes over
// no network.
TEST_F(PushTest, CountsWhatGoesToAndComesFromOtherProcesses) {
  options_.own_shard = 0;
  Connect({});
  constexpr int64_t kOthers = kSizes[kOther] * sizeof(float);
  auto pull = client_->BeginPull(Into(values_));
  ASSERT_THAT(pull, IsOk());
  ASSERT_THAT((*pull)->Finish(), IsOk());
  EXPECT_EQ((*pull)->versions()->others_bytes, kOthers);
  const auto outcome = Begin(1)->Finish();
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->others_bytes, kOthers);
  EXPECT_GT(outcome->sent_bytes, kOthers);
}

TEST_F(PushTest, IsAppliedOnceOverALossyNetwork) {
  FakeShard::Faults faults;
  faults.seed = 20260301;
  faults.lost_requests = 15;
  faults.lost_answers = 15;
  faults.duplicates = 15;
  Connect(faults);
  constexpr int kSteps = 20;
  for (int step = 1; step <= kSteps; ++step) {
    ASSERT_THAT(Pull(), IsOk());
    const auto push = Begin(step);
    for (const int tensor : {kSmall, kOther, kLarge}) {
      Compute(tensor, 1);
      push->Release(tensor);
    }
    ASSERT_THAT(push->Finish(), IsOk());
    // Whoever writes here now must not change what was pushed.
    for (int i = 0; i < 3; ++i) Compute(i, -5);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Count(i, kSteps), kSizes[i]);
  EXPECT_GT(shards_[0]->duplicates(), 0);
}

TEST_F(PushTest, GivenUpItSendsNothingMore) {
  Connect({});
  auto push = Begin(1);
  Compute(kOther, 3);
  push->Release(kOther);
  push->Release(kLarge);
  Compute(kSmall, 2);
  push.reset();
  EXPECT_EQ(Count(kOther, 3), kSizes[kOther]);
  EXPECT_EQ(Count(kSmall, 2), 0);
  // The next step is as any other.
  ASSERT_THAT(Pull(), IsOk());
  const auto next = Begin(2);
  Compute(kOther, 1);
  ASSERT_THAT(next->Finish(), IsOk());
  EXPECT_EQ(Count(kOther, 4), kSizes[kOther]);
  EXPECT_EQ(Count(kSmall, 2), kSizes[kSmall]);
}

TEST_F(PushTest, GivenUpItWaitsUntilNobodyHoldsTheGradients) {
  Connect({});
  shards_[1]->KeepFrames(true);
  auto push = Begin(1);
  push->Release(kOther);
  absl::Notification gone;
  std::thread dropper([&] {
    push.reset();
    gone.Notify();
  });
  EXPECT_FALSE(gone.WaitForNotificationWithTimeout(kLongEnough))
      << "the transport still reads the gradients";
  shards_[1]->KeepFrames(false);
  dropper.join();
}

TEST_F(PushTest, EndsOnlyWhenNobodyHoldsTheGradients) {
  Connect({});
  shards_[1]->KeepFrames(true);
  const auto push = Begin(1);
  push->ReleaseOthers();
  // Everything is answered: the fake answers before ReleaseOthers returns.
  absl::Notification ended;
  std::thread waiter([&] {
    EXPECT_THAT(push->Finish(), IsOk());
    ended.Notify();
  });
  EXPECT_FALSE(ended.WaitForNotificationWithTimeout(kLongEnough));
  shards_[1]->KeepFrames(false);
  waiter.join();
}

TEST_F(PushTest, AFailureEndsItBeforeItIsWhole) {
  Connect({});
  shards_[1]->FailWith(FencedError("epoch 1"));
  const auto push = Begin(1);
  push->Release(kOther);
  push->Release(kLarge);
  EXPECT_THAT(push->Finish(), StatusIs(absl::StatusCode::kAborted,
                                       HasSubstr("push of step 1")));
}

TEST_F(PushTest, IsRefusedBeforeAPull) {
  Connect({});
  client_->SetEpoch(2, {11, 12});
  EXPECT_THAT(client_->BeginPush(1, /*round=*/0, Views(gradients_)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace muster
