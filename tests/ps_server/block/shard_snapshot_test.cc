#include "ps_server/block/shard_snapshot.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "common/base/thread_team.h"
#include "common/tensor/aligned_buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/block/tensor_blocks.h"
#include "ps_server/shard/parameter_shard.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The value of all elements at first, which fresh memory does not hold.
constexpr float kStart = 3;

constexpr int64_t kBlockBytes = kBlockElements * sizeof(float);

// A tensor of three blocks, and a snapshot of it.
class ShardSnapshotTest : public testing::Test {
 protected:
  ShardSnapshotTest() {
    std::fill_n(parameter_.as<float>(), tensor_.elements(), kStart);
  }

  void Write(int64_t block, float value) {
    snapshot_.Reserve(0, tensor_, block);
    tensor_.set_updates(block, tensor_.updates(block) + 1);
    snapshot_.Save(0, tensor_, block);
    *tensor_.Stream(block, 0) = value;
  }

  AlignedBuffer parameter_{3 * kBlockBytes};
  TensorBlocks tensor_{MakeTensor("w", {3 * kBlockElements}),
                       {},
                       parameter_.as<float>(),
                       /*slot_memory=*/nullptr};
  ShardSnapshot snapshot_;
};

TEST_F(ShardSnapshotTest, CopiesABlockOnceWhenItIsFirstWritten) {
  Write(0, 0);
  EXPECT_EQ(snapshot_.copied_bytes(), 0) << "there is no snapshot";
  snapshot_.Begin(1, 3 * kBlockBytes);
  for (const float value : {1, 2}) Write(1, value);
  EXPECT_EQ(snapshot_.copied_bytes(), kBlockBytes);
  std::vector<float> read(2);
  for (int repeat = 0; repeat < 2; ++repeat) {
    snapshot_.Read(0, tensor_, 0, kBlockElements - 1, 2, read.data());
    EXPECT_THAT(read, ElementsAre(kStart, kStart));
  }
  EXPECT_EQ(snapshot_.Updates(0, tensor_, 1), 0);
  snapshot_.End(7);
  EXPECT_EQ(snapshot_.id(), 1) << "another's End";
  snapshot_.End(1);
  EXPECT_EQ(snapshot_.id(), 0);
  EXPECT_EQ(snapshot_.copied_bytes(), 0);
}

TEST_F(ShardSnapshotTest, IsGivenUpWhenItsCopiesWouldPassTheBudget) {
  snapshot_.Begin(4, 2 * kBlockBytes);
  Write(0, 1);
  Write(1, 1);
  Write(1, 2);
  EXPECT_EQ(snapshot_.id(), 4);
  Write(2, 1);
  EXPECT_EQ(snapshot_.id(), 0);
  EXPECT_EQ(snapshot_.copied_bytes(), 0);
  EXPECT_THAT(
      snapshot_.Check("read", 4),
      StatusIs(absl::StatusCode::kAborted, HasSubstr("4 was given up")));
  EXPECT_THAT(snapshot_.Check("read", 0),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("has ended")));
  EXPECT_EQ(snapshot_.times_given_up(), 1);
  snapshot_.Begin(5, 2 * kBlockBytes);
  EXPECT_THAT(snapshot_.Check("read", 5), IsOk());
  Write(2, 7);
  float read = 0;
  snapshot_.Read(0, tensor_, 0, 2 * kBlockElements, 1, &read);
  EXPECT_EQ(read, 1);
}

TEST_F(ShardSnapshotTest, ThreadsSaveBlocksAtTheSameTime) {
  snapshot_.Begin(1, 3 * kBlockBytes);
  for (int block = 0; block < 3; ++block) {
    snapshot_.Reserve(0, tensor_, block);
  }
  std::vector<std::thread> threads;
  for (int block = 0; block < 3; ++block) {
    threads.emplace_back([this, block] {
      snapshot_.Save(0, tensor_, block);
      *tensor_.Stream(block, 0) = 5;
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<float> read(3 * kBlockElements, -1);
  snapshot_.Read(0, tensor_, 0, 0, 3 * kBlockElements, read.data());
  EXPECT_THAT(read, Each(kStart));
}

// A shard of two blocks, with a chief that takes snapshots of it.
class SnapshotOfAShard {
 public:
  static constexpr int64_t kElements = 2 * kBlockElements;

  explicit SnapshotOfAShard(ShardOptions options, bool sync = false)
      : shard_(Options(options)) {
    EXPECT_THAT(shard_.Hello(MakeHello(chief_)), IsOk());
    DefineRequest define = MakeDefine(chief_, {MakeTensor("w", {kElements})});
    if (sync) define.mutable_replication()->mutable_sync();
    EXPECT_THAT(shard_.Define(define), IsOk());
    EXPECT_THAT(
        shard_.Load(MakeLoad(chief_, {All()},
                             BytesOf(std::vector<float>(kElements, kStart)))),
        IsOk());
    EXPECT_THAT(shard_.Seal(MakeSeal(chief_)), IsOk());
  }

  static TensorSlice All() { return MakeSlice("w", 0, kElements); }
  static TensorSlice Block(int64_t block) {
    return MakeSlice("w", block * kBlockElements, kBlockElements);
  }

  // Adds 1 to each value of `slice`, in synchronous replication with the token
  // of the next round.
  absl::Status Push(int64_t step, const TensorSlice& slice, int64_t round = 0) {
    Frame<PushPart> push = MakePush(
        chief_, step, {slice}, BytesOf(std::vector<float>(slice.length(), -1)));
    push.header.set_round(round);
    return shard_.Push(push).status();
  }

  uint64_t Begin(const StepToken& token = {}) {
    BeginSnapshotRequest begin;
    *begin.mutable_sender() = chief_;
    *begin.mutable_fence() = MakeFence();
    *begin.mutable_token() = token;
    const auto reply = shard_.BeginSnapshot(begin);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? reply->snapshot() : 0;
  }

  absl::StatusOr<std::vector<float>> Read(uint64_t snapshot,
                                          const TensorSlice& slice = All()) {
    const auto part = shard_.ReadSnapshot(MakeRead(chief_, snapshot, slice));
    if (!part.ok()) return part.status();
    return ValuesOf<float>(part->data);
  }

  // Another start of the chief says Hello, and takes over.
  void RestartChief() {
    chief_.set_incarnation(chief_.incarnation() + 1);
    HelloRequest hello = MakeHello(chief_);
    const auto first = shard_.Hello(hello);
    ASSERT_THAT(first, IsOk());
    hello.set_takeover(first->takeover());
    ASSERT_THAT(shard_.Hello(hello), IsOk());
  }

  ParameterShard& shard() { return shard_; }
  const Sender& chief() const { return chief_; }

 private:
  static ShardOptions Options(ShardOptions options) {
    options.incarnation = kPsIncarnation;
    return options;
  }

  Sender chief_ = MakeSender(0, 11);
  ParameterShard shard_;
};

TEST(SnapshotOfAShardTest, WithoutRoomItFailsAndTrainingGoesOn) {
  ShardOptions options;
  options.max_bytes = 3 * kBlockBytes;
  SnapshotOfAShard shard(options);
  const uint64_t snapshot = shard.Begin();
  ASSERT_THAT(shard.Push(1, shard.Block(0)), IsOk());
  EXPECT_THAT(shard.Read(snapshot), IsOkAndHolds(Each(kStart)));
  ASSERT_THAT(shard.Push(2, shard.Block(1)), IsOk());
  EXPECT_THAT(shard.Read(snapshot),
              StatusIs(absl::StatusCode::kAborted,
                       AllOf(HasSubstr("given up, so that training goes on"),
                             HasSubstr("the 262144 bytes left"),
                             HasSubstr("use more ps tasks"))));
  EXPECT_EQ(shard.shard().counters().given_up_snapshots, 1);
  EXPECT_THAT(shard.Read(shard.Begin()), IsOkAndHolds(Each(kStart + 1)));
}

TEST(SnapshotOfAShardTest, EndsWithTheIncarnationThatBeganIt) {
  SnapshotOfAShard shard({});
  const uint64_t snapshot = shard.Begin();
  ASSERT_THAT(shard.shard().Hello(MakeHello(MakeSender(1, 22))), IsOk());
  EXPECT_THAT(shard.Read(snapshot), IsOkAndHolds(Each(kStart)));
  shard.RestartChief();
  EXPECT_THAT(shard.Read(snapshot),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("has ended")));
}

// The first update after a cut copies all of the shard.
TEST(SnapshotOfAShardTest, StaysWhileThreadsMakeASyncUpdate) {
  ThreadTeam team(2);
  ShardOptions options;
  options.apply_team = &team;
  SnapshotOfAShard shard(options, /*sync=*/true);
  StepToken token;
  token.set_round(1);
  const uint64_t snapshot = shard.Begin(token);
  ASSERT_THAT(shard.Push(1, shard.All(), /*round=*/1), IsOk());
  token.set_round(2);
  ChosenStep* const chosen = token.add_chosen();
  *chosen->mutable_sender() = shard.chief();
  chosen->set_step(1);
  PullRequest pull = MakePull(shard.chief(), {shard.All()});
  *pull.mutable_token() = token;
  const auto pulled = shard.shard().Pull(pull);
  ASSERT_THAT(pulled, IsOk());
  EXPECT_THAT(ValuesOf<float>(pulled->data), Each(kStart + 1));
  EXPECT_THAT(shard.Read(snapshot), IsOkAndHolds(Each(kStart)));
}

}  // namespace
}  // namespace muster
