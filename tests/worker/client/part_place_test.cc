#include "worker/client/part_place.h"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/codec/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/delayed_link.h"
#include "tests/testing/fake_parameter_link.h"
#include "tests/testing/placed_answer.h"
#include "tests/testing/placing_link.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/client/two_shard_fixture.h"
#include "worker/client/link/timer_queue.h"
#include "worker/client/parameter_client.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

// Three parts on shard 0, the first of them with a small slice; a small one on
// shard 1.
constexpr std::array<int64_t, 3> kSizes = {10, 9 * kBlockElements, 700};
constexpr int kLargeParts = 3;
// A wait that is over is so in microseconds.
constexpr absl::Duration kLongEnough = absl::Milliseconds(100);

class PartPlaceTest : public TwoShardFixture {
 protected:
  // The values on the shards are those of `gradients_`.
  void Connect() {
    TwoShardFixture::Connect({}, kSizes, {0, 0, 1});
    for (auto& values : gradients_) {
      std::iota(values.begin(), values.end(), 1.0f);
    }
    ASSERT_THAT(client_->chief().LoadModel({}, Views(gradients_)), IsOk());
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (const auto& shard : shards_) {
      auto link = std::make_unique<PlacingLink>(
          std::make_unique<FakeParameterLink>(shard.get()));
      links_.push_back(link.get());
      links.push_back(std::move(link));
    }
    Reconnect(std::move(links));
  }
  // Its answers from shard 0 wait.
  std::unique_ptr<muster::Pull> BeginHeldPull() {
    links_[0]->HoldAnswers(true);
    auto pull = client_->BeginPull(Into(values_));
    EXPECT_THAT(pull, IsOk());
    return *std::move(pull);
  }
  // The same, of the first step.
  std::unique_ptr<Push> BeginHeldPush() {
    EXPECT_THAT(Pull(), IsOk());
    links_[0]->HoldAnswers(true);
    auto push =
        client_->BeginPush(1, /*round=*/0, Views(gradients_), Into(values_));
    EXPECT_THAT(push, IsOk());
    (*push)->ReleaseOthers();
    return *std::move(push);
  }
  // From now on none waits.
  void FinishHeld() {
    links_[0]->HoldAnswers(false);
    while (const auto answer = links_[0]->NextHeld()) {
      EXPECT_TRUE(answer->Write(answer->size()));
      answer->Finish();
    }
  }
  // Those on the shards, as the caller's own writes. ThreadSanitizer, as
  // .bazelrc has it, does not look into memmove.
  void WriteOwnValues() {
    for (size_t i = 0; i < values_.size(); ++i) {
      for (int64_t k = 0; k < kSizes[i]; ++k) values_[i][k] = gradients_[i][k];
    }
  }
  void ExpectValues(float factor) const {
    for (size_t i = 0; i < values_.size(); ++i) {
      std::vector<float> wanted = gradients_[i];
      for (float& value : wanted) value *= factor;
      EXPECT_TRUE(values_[i] == wanted) << "tensor " << i;
    }
  }

  std::vector<PlacingLink*> links_;  // of client_
};

// A thread that writes wrong values as an answer, again and again, until
// nobody wants them.
class Scribbler {
 public:
  explicit Scribbler(std::shared_ptr<PlacedAnswer> answer)
      : answer_(std::move(answer)), thread_([this] { Run(); }) {
    begun_.WaitForNotification();
  }
  ~Scribbler() {
    stop_ = true;
    thread_.join();
    EXPECT_FALSE(answer_->Write(1));
  }

 private:
  void Run() {
    answer_->Garble();
    do {
      if (answer_->written() == answer_->size()) answer_->Garble();
      if (!answer_->Write(kBytes)) return;
      if (!begun_.HasBeenNotified()) begun_.Notify();
    } while (!stop_);
  }

  static constexpr size_t kBytes = 1 << 14;
  const std::shared_ptr<PlacedAnswer> answer_;
  std::atomic<bool> stop_ = false;
  absl::Notification begun_;
  std::thread thread_;
};

// Begins a write, calls `end`, and expects it to return after the write only.
void ExpectWaitsForAWrite(PlacedAnswer* answer,
                          const std::function<void()>& end) {
  absl::Notification writing;
  absl::Notification go_on;
  absl::Notification ended;
  std::thread writer([&] {
    const auto wait = [&] {
      writing.Notify();
      go_on.WaitForNotification();
    };
    EXPECT_TRUE(answer->WriteAfter(wait, 1000));
  });
  writing.WaitForNotification();
  std::thread ender([&] {
    end();
    ended.Notify();
  });
  EXPECT_FALSE(ended.WaitForNotificationWithTimeout(kLongEnough));
  go_on.Notify();
  ender.join();
  writer.join();
  EXPECT_FALSE(answer->Write(1000));
}

TEST_F(PartPlaceTest, PulledValues_ArriveInTheirPlace) {
  Connect();
  const auto pull = client_->BeginPull(Into(values_));
  ASSERT_THAT(pull, IsOk());
  for (int i = 0; i < 3; ++i) EXPECT_THAT((*pull)->Await(i), IsOk());
  ASSERT_THAT((*pull)->Finish(), IsOk());
  ExpectValues(1);
  EXPECT_EQ(links_[0]->placed(), kLargeParts);
  EXPECT_EQ(links_[0]->framed(), 0);
  EXPECT_EQ(links_[1]->placed(), 0) << "it is small";
  EXPECT_EQ(links_[1]->framed(), 1);
}

TEST_F(PartPlaceTest, PushedValues_ArriveInTheirPlace) {
  Connect();
  ASSERT_THAT(Pull(), IsOk());
  const auto pushed =
      client_->PushAndWait(1, Views(gradients_), /*round=*/0, Into(values_));
  ASSERT_THAT(pushed, IsOk());
  ExpectValues(2);
  EXPECT_THAT(pushed->new_versions->parts,
              ElementsAre(std::vector<int64_t>(kLargeParts, 1),
                          std::vector<int64_t>{1}));
  EXPECT_EQ(links_[0]->placed(), 2 * kLargeParts);
  const auto pull = client_->BeginPull(Into(values_));
  ASSERT_THAT(pull, IsOk());
  ASSERT_THAT((*pull)->Finish(), IsOk());
  EXPECT_EQ((*pull)->versions()->parts, pushed->new_versions->parts);
}

TEST_F(PartPlaceTest, PlaceBehindAForwardingLink_IsUsed) {
  Connect();
  std::vector<std::unique_ptr<ParameterLink>> links;
  std::vector<PlacingLink*> placing;
  for (const auto& shard : shards_) {
    auto link = std::make_unique<PlacingLink>(
        std::make_unique<FakeParameterLink>(shard.get()));
    placing.push_back(link.get());
    links.push_back(std::make_unique<DelayedLink>(std::move(link)));
  }
  Reconnect(std::move(links));
  ASSERT_THAT(Pull(), IsOk());
  EXPECT_EQ(placing[0]->placed(), kLargeParts);
  ASSERT_THAT(
      client_->PushAndWait(1, Views(gradients_), /*round=*/0, Into(values_)),
      IsOk());
  EXPECT_EQ(placing[0]->placed(), 2 * kLargeParts);
  ExpectValues(2);
}

TEST_F(PartPlaceTest, PullBrokenInMidAnswer_IsWrittenAgainWhole) {
  Connect();
  links_[0]->BreakAnswers(2);
  ASSERT_THAT(Pull(), IsOk());
  ExpectValues(1);
  EXPECT_EQ(links_[0]->placed(), kLargeParts + 2);
}

TEST_F(PartPlaceTest, PushBrokenInMidAnswer_IsWrittenAgainWhole) {
  Connect();
  ASSERT_THAT(Pull(), IsOk());
  links_[0]->BreakAnswers(2);
  const auto pushed =
      client_->PushAndWait(1, Views(gradients_), /*round=*/0, Into(values_));
  ASSERT_THAT(pushed, IsOk());
  EXPECT_EQ(pushed->duplicate_parts, 2);
  ExpectValues(2);
}

TEST_F(PartPlaceTest, PullGivenUpInMidWrite_WaitsForIt) {
  Connect();
  auto pull = BeginHeldPull();
  ExpectWaitsForAWrite(links_[0]->NextHeld().get(), [&] { pull.reset(); });
}

TEST_F(PartPlaceTest, PushGivenUpInMidWrite_WaitsForIt) {
  Connect();
  auto push = BeginHeldPush();
  ExpectWaitsForAWrite(links_[0]->NextHeld().get(), [&] { push.reset(); });
}

TEST_F(PartPlaceTest, AttemptThatFailsInMidWrite_WaitsForIt) {
  Connect();
  const auto pull = BeginHeldPull();
  const auto answer = links_[0]->NextHeld();
  ExpectWaitsForAWrite(
      answer.get(), [&] { answer->Fail(absl::UnavailableError("deadline")); });
  FinishHeld();
  ASSERT_THAT(pull->Finish(), IsOk());
  ExpectValues(1);
}

// Seen by ThreadSanitizer, too, as the next two are.
TEST_F(PartPlaceTest, PullThatWasGivenUp_IsWrittenToNoMore) {
  Connect();
  auto pull = BeginHeldPull();
  {
    const Scribbler scribbler(links_[0]->NextHeld());
    pull.reset();
    WriteOwnValues();
  }
  ExpectValues(1);
}

TEST_F(PartPlaceTest, PushThatWasGivenUp_IsWrittenToNoMore) {
  Connect();
  auto push = BeginHeldPush();
  {
    const Scribbler scribbler(links_[0]->NextHeld());
    push.reset();
    WriteOwnValues();
  }
  ExpectValues(1);
}

TEST_F(PartPlaceTest, AttemptThatFailed_DoesNotDisturbTheNext) {
  Connect();
  const auto push = BeginHeldPush();
  const auto answer = links_[0]->NextHeld();
  {
    const Scribbler scribbler(answer);
    answer->Fail(absl::UnavailableError("reset"));
    FinishHeld();
    ASSERT_THAT(push->Finish(), IsOk());
  }
  ExpectValues(2);
}

TEST_F(PartPlaceTest, PushThatIsResumed_IsWrittenToByItsLastTransferOnly) {
  options_.transfer.give_up_after = absl::ZeroDuration();
  Connect();
  ASSERT_THAT(Pull(), IsOk());
  links_[0]->HoldAnswers(true);
  shards_[1]->FailWith(absl::UnavailableError("reset"));
  const auto push =
      client_->BeginPush(1, /*round=*/0, Views(gradients_), Into(values_));
  ASSERT_THAT(push, IsOk());
  (*push)->Release(0);
  (*push)->Release(1);
  const auto first = links_[0]->NextHeld();
  ASSERT_THAT((*push)->Finish(), StatusIs(absl::StatusCode::kUnavailable));
  shards_[1]->FailWith(absl::OkStatus());
  links_[0]->HoldAnswers(false);
  client_->Resume(push->get());
  first->Garble();
  EXPECT_FALSE(first->Write(1000));
  first->Finish();
  ASSERT_THAT((*push)->Finish(), IsOk());
  ExpectValues(2);
}

// A part of two slices, and a transfer of it that has not begun.
class PlannedPlaceTest : public ::testing::Test {
 protected:
  PlannedPlaceTest()
      : transfer_(std::make_shared<Transfer>(
            Transfer::Environment{&clock_, &timers_},
            TransferWindow({}, {{1}}, {"/job:ps/task:0"}),
            [](Transfer*, const TransferWindow::Send&) {},
            [](const absl::Status&, int64_t) {})) {}

  // Slices of so many elements of two tensors.
  PartPlace Place(int64_t first, int64_t second, const Codec* codec = nullptr) {
    PlannedPart part;
    part.slices = {{0, 0, first}, {1, 16, second}};
    part.bytes = (first + second) * static_cast<int64_t>(sizeof(float));
    return PartPlace(transfer_.get(), part, codec,
                     {MutableViewOf(absl::MakeSpan(values_[0])),
                      MutableViewOf(absl::MakeSpan(values_[1]))});
  }

  const MonotonicClock clock_{};
  TimerQueue timers_;
  const std::shared_ptr<Transfer> transfer_;
  std::array<std::vector<float>, 2> values_ = {std::vector<float>(4096),
                                               std::vector<float>(4096)};
};

TEST_F(PlannedPlaceTest, LargeSlices_ArePiecesInOrder) {
  PartPlace place = Place(10, 2038);
  const auto pieces = place.PiecesFor(8192);
  ASSERT_EQ(pieces.size(), 2);
  EXPECT_EQ(static_cast<void*>(pieces[0].data()), &values_[0][0]);
  EXPECT_EQ(pieces[0].size(), 40);
  EXPECT_EQ(static_cast<void*>(pieces[1].data()), &values_[1][16]);
  EXPECT_EQ(pieces[1].size(), 8152);
}

TEST_F(PlannedPlaceTest, AnswerOfAnotherSize_HasNoPlace) {
  PartPlace place = Place(10, 2038);
  EXPECT_TRUE(place.PiecesFor(8188).empty());
  EXPECT_TRUE(place.PiecesFor(0).empty());
}

TEST_F(PlannedPlaceTest, SmallSlices_HaveNoPlace) {
  EXPECT_TRUE(Place(10, 2037).PiecesFor(8188).empty());
}

TEST_F(PlannedPlaceTest, ValuesWithACodec_HaveNoPlace) {
  const Codec* const codec = FindCodec("bf16").value();
  PartPlace place = Place(2048, 2048, codec);
  EXPECT_TRUE(place.PiecesFor(16384).empty());
  EXPECT_TRUE(place.PiecesFor(EncodedBytes(codec, 4096)).empty());
}

}  // namespace
}  // namespace muster
