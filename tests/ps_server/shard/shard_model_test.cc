#include "ps_server/shard/shard_model.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two models on one ps task, each with "w" of one value.
class ShardModelTest : public testing::Test {
 protected:
  void MakeReady(ShardModel& model) {
    ASSERT_THAT(
        model.Define(MakeDefine(worker_, {MakeTensor("w", {1})}), 64 << 20),
        IsOk());
    ASSERT_THAT(model.Load(MakeLoad(worker_, {w_}, BytesOf<float>({0}))),
                IsOk());
    ASSERT_THAT(model.Seal(MakeSeal(worker_)), IsOk());
  }

  // Adds 1.
  absl::StatusOr<PushReply> Push(ShardModel& model, int64_t step) {
    const auto reply =
        model.Push(MakePush(worker_, step, {w_}, BytesOf<float>({-1})), {});
    if (!reply.ok()) return reply.status();
    return reply->header;
  }

  std::vector<float> Pull(ShardModel& model) {
    const auto reply = model.Pull(MakePull(worker_, {w_}), /*memory=*/nullptr);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? ValuesOf<float>(reply->data) : std::vector<float>();
  }

  absl::StatusOr<BeginSnapshotReply> Cut(ShardModel& model) {
    BeginSnapshotRequest begin;
    *begin.mutable_sender() = worker_;
    *begin.mutable_fence() = MakeFence();
    return model.BeginSnapshot(begin);
  }

  const Sender worker_ = MakeSender(0, 1);
  const TensorSlice w_ = MakeSlice("w", 0, 1);
  const ShardOptions options_ = {};
  BufferPool replies_;
  ShardModel a_{options_, &replies_};
  ShardModel b_{options_, &replies_};
};

TEST_F(ShardModelTest, TwoOfAProcessKnowNothingOfEachOther) {
  MakeReady(a_);
  EXPECT_EQ(b_.phase(), EMPTY);
  MakeReady(b_);
  ASSERT_THAT(Push(a_, 1), IsOk());
  ASSERT_THAT(Push(a_, 2), IsOk());
  const auto first_of_b = Push(b_, 1);
  ASSERT_THAT(first_of_b, IsOk());
  EXPECT_FALSE(first_of_b->duplicate());
  EXPECT_EQ(first_of_b->version(), 1);
  EXPECT_THAT(Pull(a_), ElementsAre(2));
  EXPECT_THAT(Pull(b_), ElementsAre(1));
  EXPECT_EQ(a_.counters().applied_parts, 2);
  EXPECT_EQ(b_.counters().applied_parts, 1);
}

TEST_F(ShardModelTest, ForgetsTheStepsAndTheSnapshotOfATaskThatWasReplaced) {
  MakeReady(a_);
  ASSERT_THAT(Push(a_, 3), IsOk());
  const auto snapshot = Cut(a_);
  ASSERT_THAT(snapshot, IsOk());
  const auto read = [&] {
    return a_.ReadSnapshot(MakeRead(worker_, snapshot->snapshot(), w_));
  };
  a_.Forget(MakeSender(1, 5));
  EXPECT_THAT(read(), IsOk()) << "another task";
  a_.Forget(worker_);
  EXPECT_THAT(read(), StatusIs(absl::StatusCode::kAborted));
  const auto again = Push(a_, 1);
  ASSERT_THAT(again, IsOk());
  EXPECT_FALSE(again->duplicate());
}

TEST_F(ShardModelTest, Cut_SaysWhichStepItHoldsOfAWorker) {
  MakeReady(a_);
  auto push = MakePush(worker_, 3, {w_}, BytesOf<float>({-1}));
  push.header.mutable_counts()->set_steps(13);
  ASSERT_THAT(a_.Push(push, {}), IsOk());
  const auto cut = Cut(a_);
  ASSERT_THAT(cut, IsOk());
  EXPECT_TRUE(cut->is_pushed_to());
  ASSERT_EQ(cut->held_size(), 1);
  EXPECT_EQ(cut->held(0).step(), 3);
  EXPECT_EQ(cut->held(0).counts().steps(), 13);
}

TEST_F(ShardModelTest, ShardOfFrozenTensors_IsNotPushedTo) {
  ASSERT_THAT(
      a_.Define(MakeDefine(worker_, {MakeTensor("w", {1}, FROZEN)}), 64 << 20),
      IsOk());
  ASSERT_THAT(a_.Load(MakeLoad(worker_, {w_}, BytesOf<float>({0}))), IsOk());
  ASSERT_THAT(a_.Seal(MakeSeal(worker_)), IsOk());
  const auto cut = Cut(a_);
  ASSERT_THAT(cut, IsOk());
  EXPECT_FALSE(cut->is_pushed_to());
}

TEST_F(ShardModelTest, CountsOutOfRange_AreRefused) {
  MakeReady(a_);
  auto push = MakePush(worker_, 1, {w_}, BytesOf<float>({-1}));
  push.header.mutable_counts()->set_steps(-1);
  EXPECT_THAT(a_.Push(push, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1")));
  push.header.mutable_counts()->set_steps(1);
  push.header.mutable_counts()->set_examples(-2);
  EXPECT_THAT(a_.Push(push, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-2")));
}

}  // namespace
}  // namespace muster
