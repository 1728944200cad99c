// Encoded values, from a shard as it runs in production, over every link, to
// the memory of a client.
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/cluster/placement.h"
#include "common/codec/codec.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/linked_shard.h"
#include "tests/testing/lossy_parameter_link.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/parameter_client.h"

namespace muster {
namespace {

// Several parts, the last of which three tensors share.
constexpr int64_t kSizes[] = {10, 5 * kBlockElements + 3, 700};
constexpr int64_t kAll = 10 + 5 * kBlockElements + 3 + 700;
constexpr uint64_t kPsIncarnation = 77;

using ValuesOfAll = std::vector<std::vector<float>>;

// link, codec, of the gradients
class PullCodecTest : public testing::TestWithParam<
                          std::tuple<LinkKind, std::string, std::string>> {
 protected:
  PullCodecTest() : shard_(std::get<0>(GetParam()), ShardOptionsOf(&clock_)) {
    for (const int64_t size : kSizes) {
      start_.emplace_back(size);
      for (int64_t i = 0; i < size; ++i) {
        start_.back()[i] = static_cast<float>(1 + i % 1000) / 3;
      }
      values_.emplace_back(size, 0.0f);
      gradients_.emplace_back(size, 0.125f);
    }
    Connect();
  }

  static ShardServer::Options ShardOptionsOf(const Clock* clock) {
    ShardServer::Options options;
    options.shard.incarnation = kPsIncarnation;
    options.clock = clock;
    return options;
  }

  void Connect() {
    ParameterClient::Options options;
    options.clock = &clock_;
    options.sender.mutable_task()->set_job("worker");
    options.sender.set_incarnation(5);
    options.transfer.backoff.initial = absl::Milliseconds(1);
    options.transfer.backoff.max = absl::Milliseconds(4);
    options.pull_codec = codec_;
    options.codec = FindCodec(std::get<2>(GetParam())).value();
    options.ps_names = {"/job:ps/task:0"};
    LossyParameterLink::Options loss;
    loss.lose_request = loss.lose_reply = loss.repeat = 0.1;
    std::vector<std::unique_ptr<ParameterLink>> links;
    links.push_back(std::make_unique<LossyParameterLink>(&shard_.link(), loss));
    client_ = std::make_unique<ParameterClient>(options, std::move(links));
    std::vector<TensorDef> tensors(std::size(kSizes));
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].set_name(absl::StrCat("tensor", i));
      tensors[i].add_shape(kSizes[i]);
      tensors[i].set_dtype(FLOAT32);
    }
    ASSERT_THAT(
        client_->SetModel(tensors, PlaceWhole(tensors, {0, 0, 0}).value()),
        IsOk());
    HelloRequest hello;
    hello.set_protocol_version(kProtocolVersion);
    *hello.mutable_sender() = options.sender;
    ASSERT_THAT(AwaitReply<HelloReply>([&](ReplyCallback<HelloReply> done) {
                  client_->Hello(0, hello, std::move(done));
                }),
                IsOk());
    client_->SetEpoch(1, {kPsIncarnation});
    ModelDefinition definition;
    definition.optimizer.set_name("sgd");
    ASSERT_THAT(client_->chief().LoadModel(definition, Views(start_)), IsOk());
  }

  static std::vector<TensorView> Views(const ValuesOfAll& of) {
    std::vector<TensorView> views;
    for (const auto& values : of) {
      views.push_back(ViewOf(absl::MakeConstSpan(values)));
    }
    return views;
  }

  static std::vector<MutableTensorView> Into(ValuesOfAll* of) {
    std::vector<MutableTensorView> views;
    for (auto& values : *of) {
      views.push_back(MutableViewOf(absl::MakeSpan(values)));
    }
    return views;
  }

  // The values as the way leaves them; checks the codec's bound.
  ValuesOfAll OnArrival(ValuesOfAll all) const {
    if (codec_ == nullptr) return all;
    for (auto& values : all) {
      const auto n = static_cast<int64_t>(values.size());
      std::string bytes(static_cast<size_t>(EncodedBytes(codec_, n)), '\0');
      codec_->Encode(values.data(), n, &bytes[0]);
      std::vector<float> decoded(values.size());
      codec_->Decode(bytes.data(), n, decoded.data());
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_NEAR(decoded[i], values[i],
                    codec_->relative_error() * values[i]);
      }
      EXPECT_NE(decoded, values);
      values = std::move(decoded);
    }
    return all;
  }

  // As they are in the shard.
  ValuesOfAll PullPlainly() {
    ValuesOfAll all = values_;
    EXPECT_THAT(client_->PullAndWait(Into(&all)), IsOk());
    return all;
  }

  MonotonicClock clock_;
  const Codec* const codec_ = FindCodec(std::get<1>(GetParam())).value();
  LinkedShard shard_;
  std::unique_ptr<ParameterClient> client_;
  ValuesOfAll start_;
  ValuesOfAll values_;
  ValuesOfAll gradients_;
};

TEST_P(PullCodecTest, AStepsPullBringsEncodedValuesAndAPlainOneFloat32) {
  const auto pull = client_->BeginPull(Into(&values_));
  ASSERT_THAT(pull, IsOk());
  ASSERT_THAT((*pull)->Finish(), IsOk());
  EXPECT_TRUE(values_ == OnArrival(start_));
  EXPECT_EQ((*pull)->versions()->bytes, EncodedBytes(codec_, kAll));
  EXPECT_TRUE(PullPlainly() == start_);
}

TEST_P(PullCodecTest, APushBringsEncodedValuesAndTheShardKeepsFloat32) {
  ASSERT_THAT(client_->PullAndWait(Into(&values_)), IsOk());
  for (int step = 1; step <= 5; ++step) {
    const auto outcome = client_->PushAndWait(step, Views(gradients_),
                                              /*round=*/0, Into(&values_));
    ASSERT_THAT(outcome, IsOk());
    EXPECT_EQ(outcome->new_versions->bytes, EncodedBytes(codec_, kAll));
    EXPECT_TRUE(values_ == OnArrival(PullPlainly())) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Links, PullCodecTest,
                         testing::Combine(testing::ValuesIn(kAllLinks),
                                          testing::Values("", "bf16", "fp16"),
                                          testing::Values("", "bf16")));

}  // namespace
}  // namespace muster
