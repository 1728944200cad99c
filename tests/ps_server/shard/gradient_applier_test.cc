#include "ps_server/shard/gradient_applier.h"

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "common/base/thread_team.h"
#include "common/codec/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/shard/parameter_shard.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Values;

// Together no more than a part takes.
constexpr int64_t kWeights = 2 * kBlockElements + 7;
constexpr int64_t kBias = 3;
constexpr int64_t kAverage = kBlockElements;
constexpr int64_t kAll = kWeights + kBias + kAverage;

std::vector<TensorSlice> AllSlices() {
  return {MakeSlice("weights", 0, kWeights), MakeSlice("bias", 0, kBias),
          MakeSlice("average", 0, kAverage)};
}

// Neither equal nor in order, and exact as bf16.
std::vector<float> Gradient(int seed) {
  std::vector<float> values(kAll);
  for (int64_t i = 0; i < kAll; ++i) {
    values[i] = static_cast<float>((i * 7 + seed * 13) % 61 - 30) / 32;
  }
  return values;
}

// A shard with two large tensors and a small one, whose work a team of
// `threads` shares, and one worker.
class TeamShard {
 public:
  TeamShard(int threads, const std::string& optimizer, bool sync)
      : team_(threads), shard_(Options(threads == 1 ? nullptr : &team_)) {
    EXPECT_THAT(shard_.Hello(MakeHello(worker_)), IsOk());
    DefineRequest define =
        MakeDefine(worker_, {MakeTensor("weights", {kWeights}),
                             MakeTensor("bias", {kBias}),
                             MakeTensor("average", {kAverage}, STATE)});
    define.mutable_tensors(2)->set_decay(0.1F);
    define.mutable_optimizer()->set_name(optimizer);
    if (sync) define.mutable_replication()->mutable_sync();
    EXPECT_THAT(shard_.Define(define), IsOk());
    EXPECT_THAT(shard_.Load(MakeLoad(worker_, AllSlices(),
                                     BytesOf(std::vector<float>(kAll, 1)))),
                IsOk());
    EXPECT_THAT(shard_.Seal(MakeSeal(worker_)), IsOk());
    if (sync) Pull(1);
  }

  absl::Status Push(int64_t step, const std::vector<float>& gradient,
                    const std::string& codec = "", int64_t round = 0) {
    const Codec* const encoder = *FindCodec(codec);
    std::string bytes(EncodedBytes(encoder, kAll), '\0');
    if (encoder == nullptr) {
      bytes = std::string(BytesOf(gradient));
    } else {
      encoder->Encode(gradient.data(), kAll, &bytes[0]);
    }
    Frame<PushPart> push =
        MakePush(worker_, step, AllSlices(), absl::Cord(bytes));
    push.header.set_codec(codec);
    push.header.set_round(round);
    push.header.set_pulled_version(shard_.State().version());
    return shard_.Push(push).status();
  }

  // With the token that closes the round before `round`, of step round - 1.
  std::vector<float> Pull(int64_t round = 0) {
    PullRequest pull = MakePull(worker_, AllSlices());
    if (round > 0) {
      pull.mutable_token()->set_round(round);
      ChosenStep* const chosen = pull.mutable_token()->add_chosen();
      *chosen->mutable_sender() = worker_;
      chosen->set_step(round - 1);
      if (round == 1) pull.mutable_token()->clear_chosen();
    }
    const auto reply = shard_.Pull(pull);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? ValuesOf<float>(reply->data) : std::vector<float>();
  }

 private:
  static ShardOptions Options(ThreadTeam* team) {
    ShardOptions options;
    options.incarnation = kPsIncarnation;
    options.apply_team = team;
    return options;
  }

  const Sender worker_ = MakeSender(0, 11);
  ThreadTeam team_;
  ParameterShard shard_;
};

// optimizer, codec
class ApplyThreadsTest
    : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(ApplyThreadsTest, AsyncUpdatesAreTheSameToTheBit) {
  const auto& [optimizer, codec] = GetParam();
  TeamShard one(1, optimizer, /*sync=*/false);
  TeamShard three(3, optimizer, /*sync=*/false);
  for (int step = 1; step <= 3; ++step) {
    ASSERT_THAT(one.Push(step, Gradient(step), codec), IsOk());
    ASSERT_THAT(three.Push(step, Gradient(step), codec), IsOk());
  }
  const std::vector<float> values = one.Pull();
  EXPECT_TRUE(values == three.Pull());
  EXPECT_NE(values[0], 1);
  EXPECT_NE(values[kAll - 1], 1);
}

TEST_P(ApplyThreadsTest, SyncUpdatesAreTheSameToTheBit) {
  const auto& [optimizer, codec] = GetParam();
  TeamShard one(1, optimizer, /*sync=*/true);
  TeamShard three(3, optimizer, /*sync=*/true);
  for (int step = 1; step <= 3; ++step) {
    ASSERT_THAT(one.Push(step, Gradient(step), codec, step), IsOk());
    ASSERT_THAT(three.Push(step, Gradient(step), codec, step), IsOk());
    const std::vector<float> values = one.Pull(step + 1);
    ASSERT_TRUE(values == three.Pull(step + 1));
    EXPECT_NE(values[0], 1);
    EXPECT_NE(values[kAll - 1], 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, ApplyThreadsTest,
                         testing::Combine(Values("sgd", "momentum", "adam"),
                                          Values("", "bf16")));

TEST(GradientApplierTest, NamesTheFirstBadValueAndChangesNothing) {
  TeamShard shard(3, "sgd", /*sync=*/false);
  std::vector<float> gradient = Gradient(1);
  gradient[kWeights + kBias + 60000] = std::nanf("");
  gradient[kBlockElements + 5] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(shard.Push(1, gradient),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'weights' has NaN or infinity at element "
                                 "65541; nothing was changed")));
  EXPECT_THAT(shard.Pull(), testing::Each(1));
  gradient = Gradient(1);
  gradient[kAll - 1] = std::numeric_limits<float>::max();
  ASSERT_THAT(shard.Push(1, gradient), IsOk());
  EXPECT_THAT(shard.Push(2, gradient),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'average' would become infinite")));
}

// Goes on only when two threads are in it.
class MeetingRule : public UpdateRule {
 public:
  absl::Span<const SlotDef> slots() const override { return {}; }
  void Apply(const BlockUpdate&, const float* gradient, float* parameter,
             absl::Span<float* const>, int64_t n) const override {
    if (barrier_->Block()) delete barrier_;
    for (int64_t i = 0; i < n; ++i) parameter[i] -= gradient[i];
  }
  void ApplyEncoded(const BlockUpdate& update,
                    const Elements& all) const override {
    Apply(update, reinterpret_cast<const float*>(all.gradient.data),
          all.parameter, all.slots, all.n);
  }
  void ApplyToRows(absl::Span<const RowUpdate>, int64_t) const override {}

 private:
  absl::Barrier* const barrier_ = new absl::Barrier(2);
};

TEST(GradientApplierTest, TwoThreadsApplyTwoBlocksAtTheSameTime) {
  ThreadTeam team(2);
  google::protobuf::RepeatedPtrField<TensorDef> defs;
  *defs.Add() = MakeTensor("weights", {2 * kBlockElements});
  TensorTable tensors = *TensorTable::Create(defs, {});
  const MeetingRule rule;
  ShardSnapshot snapshot;
  GradientApplier applier(&team);
  applier.ApplyToBlocks({{0, 0, 2 * kBlockElements}}, /*rate_factor=*/1,
                        [](int, int64_t block, absl::Span<float> gradient) {
                          for (float& value : gradient)
                            value = static_cast<float>(block + 1);
                        },
                        {&tensors, &rule, &snapshot});
  EXPECT_EQ(tensors[0].Stream(0, 0)[0], -1);
  EXPECT_EQ(tensors[0].Stream(1, 0)[0], -2);
}

}  // namespace
}  // namespace muster
