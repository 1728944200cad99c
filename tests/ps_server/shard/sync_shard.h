#ifndef TESTS_PS_SERVER_SHARD_SYNC_SHARD_H_
#define TESTS_PS_SERVER_SHARD_SYNC_SHARD_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/codec/codec.h"
#include "gtest/gtest.h"
#include "ps_server/shard/parameter_shard.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {

// Elements of the trainable parameter: two blocks.
inline constexpr int64_t kWeights = kBlockElements + 8;
// Elements of the state tensor.
inline constexpr int64_t kState = 3;
inline constexpr int64_t kModel = kWeights + kState;

inline ChosenStep MakeChosen(const Sender& sender, int64_t step) {
  ChosenStep chosen;
  *chosen.mutable_sender() = sender;
  chosen.set_step(step);
  return chosen;
}

inline StepToken MakeToken(int64_t round,
                           const std::vector<ChosenStep>& chosen = {}) {
  StepToken token;
  token.set_round(round);
  for (const ChosenStep& step : chosen) *token.add_chosen() = step;
  return token;
}

// A shard with "weights" (trainable, two blocks) and "average" (state), and
// verbs for it. A gradient is kModel values: those of both, one after another.
class SyncShard {
 public:
  // The parts of a step, by what they carry.
  enum Part { kFirstBlock = 0, kSecondBlock = 1, kAverage = 2 };
  static constexpr int32_t kParts = 3;

  // `define` says how it replicates and updates.
  explicit SyncShard(const DefineRequest& define,
                     int64_t max_gradient_bytes = int64_t{1} << 30,
                     int64_t max_bytes = ShardOptions().max_bytes)
      : shard_(Options(max_gradient_bytes, max_bytes)) {
    EXPECT_THAT(Hello(chief_), IsOk());
    EXPECT_THAT(shard_.Define(define), IsOk());
    EXPECT_THAT(
        shard_.Load(MakeLoad(chief_, AllSlices(),
                             BytesOf(std::vector<float>(kModel, 1.0F)))),
        IsOk());
    EXPECT_THAT(shard_.Seal(MakeSeal(chief_)), IsOk());
  }

  static DefineRequest MakeModel(const std::string& optimizer = "sgd") {
    DefineRequest define = MakeDefine(MakeSender(0, 100),
                                      {MakeTensor("weights", {kWeights}),
                                       MakeTensor("average", {kState}, STATE)});
    define.mutable_optimizer()->set_name(optimizer);
    return define;
  }
  static DefineRequest MakeSyncModel(const std::string& optimizer = "sgd") {
    DefineRequest define = MakeModel(optimizer);
    define.mutable_replication()->mutable_sync();
    return define;
  }

  absl::Status Hello(const Sender& sender) {
    HelloRequest request = MakeHello(sender);
    absl::StatusOr<HelloReply> reply = shard_.Hello(request);
    if (reply.ok() && reply->takeover() != 0) {
      request.set_takeover(reply->takeover());
      reply = shard_.Hello(request);
    }
    return reply.status();
  }

  absl::StatusOr<std::vector<float>> Pull(const Sender& sender,
                                          const StepToken& token) {
    PullRequest request = MakePull(sender, AllSlices());
    *request.mutable_token() = token;
    const auto reply = shard_.Pull(request);
    if (!reply.ok()) return reply.status();
    return ValuesOf<float>(reply->data);
  }

  // One part of `gradient` as step `step` of round `round`.
  Frame<PushPart> MakePart(const Sender& sender, int64_t step, int64_t round,
                           const std::vector<float>& gradient, Part part,
                           const Codec* codec = nullptr) const {
    const TensorSlice slices[] = {
        MakeSlice("weights", 0, kBlockElements),
        MakeSlice("weights", kBlockElements, kWeights - kBlockElements),
        MakeSlice("average", 0, kState)};
    const int64_t begins[] = {0, kBlockElements, kWeights, kModel};
    const std::vector<float> values(gradient.begin() + begins[part],
                                    gradient.begin() + begins[part + 1]);
    Frame<PushPart> push =
        MakePush(sender, step, {slices[part]}, BytesOf(values), part, kParts);
    push.header.set_round(round);
    push.header.set_pulled_version(shard_.State().version());
    if (codec == nullptr) return push;
    std::string encoded(EncodedBytes(codec, values.size()), '\0');
    codec->Encode(values.data(), values.size(), encoded.data());
    push.header.set_codec(std::string(codec->name()));
    push.data = absl::Cord(encoded);
    return push;
  }

  // All parts of a step.
  void PushStep(const Sender& sender, int64_t step, int64_t round,
                const std::vector<float>& gradient) {
    for (const Part part : {kFirstBlock, kSecondBlock, kAverage}) {
      ASSERT_THAT(shard_.Push(MakePart(sender, step, round, gradient, part)),
                  IsOk());
    }
  }

  static std::vector<TensorSlice> AllSlices() {
    return {MakeSlice("weights", 0, kWeights), MakeSlice("average", 0, kState)};
  }

  ParameterShard& shard() { return shard_; }
  const Sender& chief() const { return chief_; }

 private:
  static ShardOptions Options(int64_t max_gradient_bytes, int64_t max_bytes) {
    ShardOptions options;
    options.max_bytes = max_bytes;
    options.incarnation = kPsIncarnation;
    options.max_gradient_bytes = max_gradient_bytes;
    return options;
  }

  const Sender chief_ = MakeSender(0, 100);
  ParameterShard shard_;
};

}  // namespace muster

#endif  // TESTS_PS_SERVER_SHARD_SYNC_SHARD_H_
