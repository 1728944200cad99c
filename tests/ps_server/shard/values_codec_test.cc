// Answers whose values are encoded: those of pulls and pushes, written to
// memory of the caller's or of the shard's own, in one pass with the update or
// after it.
#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/thread_team.h"
#include "common/codec/codec.h"
#include "common/codec/encoded_values.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/shard/parameter_shard.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Values;

// Several blocks and the end of one, and a small tensor.
constexpr int64_t kLarge = 3 * kBlockElements + 20001;
constexpr int64_t kSmall = 3;
constexpr int64_t kAll = kLarge + kSmall;

std::vector<TensorSlice> AllSlices() {
  return {MakeSlice("w", 0, kLarge), MakeSlice("b", 0, kSmall)};
}

// Thirds: every codec rounds them.
std::vector<float> Thirds(float scale) {
  std::vector<float> values(kAll);
  for (int64_t i = 0; i < kAll; ++i) {
    values[i] = scale * static_cast<float>(1 + i % 1000) / 3;
  }
  return values;
}

std::string Encoded(const std::string& codec,
                    const std::vector<float>& values) {
  const Codec* const encoder = FindCodec(codec).value();
  const auto n = static_cast<int64_t>(values.size());
  std::string bytes(static_cast<size_t>(EncodedBytes(encoder, n)), '\0');
  EncodeTo(encoder, values.data(), n, &bytes[0]);
  return bytes;
}

class ValuesShard {
 public:
  explicit ValuesShard(int threads = 1) : team_(threads) {
    ShardOptions options;
    options.incarnation = kPsIncarnation;
    options.apply_team = &team_;
    shard_ = std::make_unique<ParameterShard>(options);
  }

  void MakeReady(bool sync = false) {
    EXPECT_THAT(shard_->Hello(MakeHello(worker_)), IsOk());
    DefineRequest define = MakeDefine(
        worker_, {MakeTensor("w", {kLarge}), MakeTensor("b", {kSmall})});
    if (sync) define.mutable_replication()->mutable_sync();
    EXPECT_THAT(shard_->Define(define), IsOk());
    EXPECT_THAT(
        shard_->Load(MakeLoad(worker_, AllSlices(), BytesOf(Thirds(1)))),
        IsOk());
    EXPECT_THAT(shard_->Seal(MakeSeal(worker_)), IsOk());
  }

  Frame<PushPart> PushOf(int64_t step, const std::string& codec,
                         const std::string& values_codec) {
    Frame<PushPart> push = MakePush(worker_, step, AllSlices(),
                                    absl::Cord(Encoded(codec, Thirds(0.25f))));
    push.header.set_codec(codec);
    push.header.set_wants_values(true);
    push.header.set_values_codec(values_codec);
    push.header.set_pulled_version(shard_->State().version());
    return push;
  }

  std::vector<float> Pull() {
    const auto reply = shard_->Pull(MakePull(worker_, AllSlices()));
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? ValuesOf<float>(reply->data) : std::vector<float>();
  }

  const Sender& worker() const { return worker_; }
  ParameterShard& shard() { return *shard_; }

 private:
  const Sender worker_ = MakeSender(0, 11);
  ThreadTeam team_;
  std::unique_ptr<ParameterShard> shard_;
};

// The codecs of the gradient and of the values, and the number of threads.
class ValuesCodecTest
    : public testing::TestWithParam<std::tuple<std::string, std::string, int>> {
 protected:
  const std::string gradient_codec_ = std::get<0>(GetParam());
  const std::string values_codec_ = std::get<1>(GetParam());
  const int threads_ = std::get<2>(GetParam());
};

TEST_P(ValuesCodecTest, APushIsAnsweredAsItWantsWhereverTheValuesGo) {
  ValuesShard in_place(threads_);
  ValuesShard in_memory(threads_);
  in_place.MakeReady();
  in_memory.MakeReady();
  const auto reply =
      in_place.shard().Push(in_place.PushOf(1, gradient_codec_, values_codec_));
  ASSERT_THAT(reply, IsOk());
  std::string place;
  const ValueMemory memory = [&place](size_t size_bytes,
                                      absl::FunctionRef<void(char*)> fill) {
    place.resize(size_bytes);
    fill(&place[0]);
    return absl::MakeCordFromExternal(place, [] {});
  };
  Frame<PushPart> push = in_memory.PushOf(1, gradient_codec_, values_codec_);
  const auto other = in_memory.shard().Push(push, {memory});
  ASSERT_THAT(other, IsOk());
  const std::vector<float> values = in_place.Pull();
  EXPECT_NE(values, Thirds(1));
  EXPECT_TRUE(in_memory.Pull() == values);
  const std::string wanted = Encoded(values_codec_, values);
  EXPECT_TRUE(reply->data == wanted);
  EXPECT_TRUE(other->data == wanted);
  EXPECT_TRUE(place == wanted);
  // A duplicate has those of now.
  const auto again = in_memory.shard().Push(push, {memory});
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->header.duplicate());
  EXPECT_TRUE(again->data == wanted);
}

TEST_P(ValuesCodecTest, ValuesMayTakeThePlaceOfAGradientOfTheirSize) {
  if (gradient_codec_ != values_codec_) return;
  ValuesShard shard(threads_);
  shard.MakeReady();
  std::string place = Encoded(gradient_codec_, Thirds(0.25f));
  Frame<PushPart> push = shard.PushOf(1, gradient_codec_, values_codec_);
  push.data = absl::MakeCordFromExternal(place, [] {});
  const auto reply = shard.shard().Push(
      push, {[&place](size_t size_bytes, absl::FunctionRef<void(char*)> fill) {
        EXPECT_EQ(size_bytes, place.size());
        fill(&place[0]);
        return absl::MakeCordFromExternal(place, [] {});
      }});
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(place == Encoded(values_codec_, shard.Pull()));
}

TEST_P(ValuesCodecTest, APullIsAnsweredAsItWants) {
  ValuesShard shard(threads_);
  shard.MakeReady();
  PullRequest pull = MakePull(
      shard.worker(), {MakeSlice("b", 1, 2), MakeSlice("w", 5, kLarge - 9)});
  pull.set_codec(values_codec_);
  const auto reply = shard.shard().Pull(pull);
  ASSERT_THAT(reply, IsOk());
  const std::vector<float> all = Thirds(1);
  std::vector<float> wanted(all.end() - 2, all.end());
  wanted.insert(wanted.end(), all.begin() + 5, all.begin() + kLarge - 4);
  EXPECT_TRUE(reply->data == Encoded(values_codec_, wanted));
}

INSTANTIATE_TEST_SUITE_P(Codecs, ValuesCodecTest,
                         testing::Combine(Values("", "bf16", "fp16"),
                                          Values("", "bf16", "fp16"),
                                          Values(1, 3)));

TEST(ValuesCodecErrorTest, ACodecThatThePsLacksChangesNothing) {
  ValuesShard shard;
  shard.MakeReady();
  PullRequest pull = MakePull(shard.worker(), AllSlices());
  pull.set_codec("int8");
  EXPECT_THAT(shard.shard().Pull(pull),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("codec 'int8' is not one that this ps has: "
                                 "bf16, fp16")));
  EXPECT_THAT(shard.shard().Push(shard.PushOf(1, "", "int8")),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("'int8'")));
  EXPECT_TRUE(shard.Pull() == Thirds(1));
  EXPECT_EQ(shard.shard().State().applied_parts(), 0);
}

TEST(ValuesCodecErrorTest, MemoryIsAskedForOnlyWhenEveryCheckHasPassed) {
  ValuesShard shard;
  shard.MakeReady();
  Frame<PushPart> push = shard.PushOf(1, "", "bf16");
  push.data = absl::Cord("short");
  const auto refused = shard.shard().Push(
      push, {[](size_t, absl::FunctionRef<void(char*)>) -> absl::Cord {
        ADD_FAILURE() << "memory for a push that is refused";
        return absl::Cord();
      }});
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("the frame has 5")));
}

TEST(ValuesCodecErrorTest, APushOfNothingIsCountedAndBringsNothing) {
  ValuesShard shard;
  shard.MakeReady();
  Frame<PushPart> push = MakePush(shard.worker(), 1, {}, absl::Cord());
  push.header.set_wants_values(true);
  push.header.set_values_codec("bf16");
  const auto reply = shard.shard().Push(push);
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(reply->data.empty());
  EXPECT_EQ(shard.shard().State().version(), 1);
}

// A gradient that is kept for its round is not in the values yet.
TEST(ValuesCodecErrorTest, AStoredPushIsAnsweredByTheValuesOfNow) {
  ValuesShard shard;
  shard.MakeReady(/*sync=*/true);
  PullRequest pull = MakePull(shard.worker(), AllSlices());
  pull.mutable_token()->set_round(1);
  pull.set_codec("fp16");
  const auto pulled = shard.shard().Pull(pull);
  ASSERT_THAT(pulled, IsOk());
  Frame<PushPart> push = shard.PushOf(1, "", "fp16");
  push.header.set_round(1);
  const auto reply = shard.shard().Push(push);
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(pulled->data == reply->data);
  EXPECT_TRUE(reply->data == Encoded("fp16", Thirds(1)));
}

}  // namespace
}  // namespace muster
