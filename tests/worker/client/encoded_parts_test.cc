// Encoded pushes, from the client over a link that loses messages to a shard
// as it runs in production.
#include "worker/client/encoded_parts.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/cluster/placement.h"
#include "common/codec/codec.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_server.h"
#include "tests/testing/lossy_parameter_link.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/parameter_client.h"

namespace muster {
namespace {

constexpr int kShards = 2;
constexpr int64_t kLarge = 5 * kBlockElements + 3;
constexpr int64_t kSizes[] = {10, kLarge, 700};

// Writes down what every push carries.
class RecordingLink : public LossyParameterLink {
 public:
  using LossyParameterLink::LossyParameterLink;

  void PushTo(std::shared_ptr<ValuePlace> place, Frame<PushPart> request,
              absl::Time deadline,
              ReplyCallback<Frame<PushReply>> done) override {
    {
      absl::MutexLock lock(&mu_);
      const auto key =
          std::make_pair(request.header.step(), request.header.part());
      const std::string bytes(request.data);
      EXPECT_EQ(request.header.codec(), "bf16");
      const auto [it, added] = sent_.emplace(key, bytes);
      if (!added) {
        ++repeats_;
        EXPECT_EQ(it->second, bytes) << "step " << key.first;
      }
    }
    LossyParameterLink::PushTo(std::move(place), std::move(request), deadline,
                               std::move(done));
  }

  int64_t bytes_of_step(int64_t step) {
    absl::MutexLock lock(&mu_);
    int64_t bytes = 0;
    for (const auto& [key, data] : sent_) {
      if (key.first == step) bytes += static_cast<int64_t>(data.size());
    }
    return bytes;
  }
  int64_t repeats() {
    absl::MutexLock lock(&mu_);
    return repeats_;
  }

 private:
  absl::Mutex mu_;
  std::map<std::pair<int64_t, int32_t>, std::string> sent_ ABSL_GUARDED_BY(mu_);
  int64_t repeats_ ABSL_GUARDED_BY(mu_) = 0;
};

class EncodedPartsTest : public testing::Test {
 protected:
  EncodedPartsTest() {
    ParameterClient::Options options;
    options.clock = &clock_;
    options.sender.mutable_task()->set_job("worker");
    options.sender.set_incarnation(5);
    options.transfer.backoff.initial = absl::Milliseconds(1);
    options.transfer.backoff.max = absl::Milliseconds(4);
    options.codec = FindCodec("bf16").value();
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (int i = 0; i < kShards; ++i) {
      ShardServer::Options shard;
      shard.shard.incarnation = Incarnation(i);
      shard.shard.ps_index = i;
      shard.clock = &clock_;
      shards_.push_back(std::make_unique<ShardServer>(shard));
      LossyParameterLink::Options loss;
      loss.seed = 20261121 + i;
      loss.lose_request = loss.lose_reply = loss.repeat = 0.15;
      auto link = std::make_unique<RecordingLink>(shards_[i].get(), loss);
      links_.push_back(link.get());
      links.push_back(std::move(link));
      options.ps_names.push_back(absl::StrCat("/job:ps/task:", i));
    }
    client_ = std::make_unique<ParameterClient>(options, std::move(links));
    for (const int64_t size : kSizes) {
      values_.emplace_back(size, 0.0f);
      gradients_.emplace_back(size, -1.0f);
    }
  }

  static uint64_t Incarnation(int shard) { return 11 + shard; }

  void LoadZeros() {
    std::vector<TensorDef> tensors(std::size(kSizes));
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].set_name(absl::StrCat("tensor", i));
      tensors[i].add_shape(kSizes[i]);
      tensors[i].set_dtype(FLOAT32);
    }
    ASSERT_THAT(
        client_->SetModel(tensors, PlaceWhole(tensors, {0, 1, 0}).value()),
        IsOk());
    for (int i = 0; i < kShards; ++i) {
      HelloRequest hello;
      hello.set_protocol_version(kProtocolVersion);
      hello.mutable_sender()->mutable_task()->set_job("worker");
      hello.mutable_sender()->set_incarnation(5);
      hello.set_ps_index(i);
      client_->Hello(i, hello, [](const absl::StatusOr<HelloReply>& reply) {
        EXPECT_THAT(reply, IsOk());
      });
    }
    client_->SetEpoch(1, {Incarnation(0), Incarnation(1)});
    ModelDefinition definition;
    definition.optimizer.set_name("sgd");
    Attr* const rate = definition.optimizer.add_attr();
    rate->set_name("learning_rate");
    rate->set_f(1.0);
    ASSERT_THAT(client_->chief().LoadModel(definition, ViewsOf(values_)),
                IsOk());
  }

  static std::vector<TensorView> ViewsOf(
      const std::vector<std::vector<float>>& of) {
    std::vector<TensorView> views;
    for (const auto& values : of) {
      views.push_back(ViewOf(absl::MakeConstSpan(values)));
    }
    return views;
  }

  absl::Status Pull() {
    std::vector<MutableTensorView> views;
    for (auto& values : values_) {
      views.push_back(MutableViewOf(absl::MakeSpan(values)));
    }
    return client_->PullAndWait(views);
  }

  MonotonicClock clock_;
  std::vector<std::unique_ptr<ShardServer>> shards_;
  std::vector<RecordingLink*> links_;
  std::unique_ptr<ParameterClient> client_;
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<float>> gradients_;
};

// Small integers are exact in bf16: the counters equal the steps.
TEST_F(EncodedPartsTest, EveryStepIsAppliedOnceWithTheSameBytes) {
  LoadZeros();
  constexpr int kSteps = 20;
  for (int step = 1; step <= kSteps; ++step) {
    ASSERT_THAT(Pull(), IsOk());
    ASSERT_THAT(client_->PushAndWait(step, ViewsOf(gradients_)), IsOk());
  }
  ASSERT_THAT(Pull(), IsOk());
  for (const auto& values : values_) {
    EXPECT_EQ(values, std::vector<float>(values.size(), kSteps));
  }
  EXPECT_GT(links_[0]->repeats() + links_[1]->repeats(), 0);
}

TEST_F(EncodedPartsTest, HalvesTheBytesAndKeepsTheBound) {
  LoadZeros();
  // Sixteenths need more bits than bf16 has: values do get rounded.
  for (auto& gradient : gradients_) {
    for (size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = -1.0f - static_cast<float>(i % 1000) / 16;
    }
  }
  ASSERT_THAT(Pull(), IsOk());
  ASSERT_THAT(client_->PushAndWait(1, ViewsOf(gradients_)), IsOk());
  EXPECT_EQ(links_[0]->bytes_of_step(1), 2 * (kSizes[0] + kSizes[2]));
  EXPECT_EQ(links_[1]->bytes_of_step(1), 2 * kSizes[1]);
  ASSERT_THAT(Pull(), IsOk());
  const double bound = FindCodec("bf16").value()->relative_error();
  int64_t rounded = 0;
  for (size_t tensor = 0; tensor < values_.size(); ++tensor) {
    for (size_t i = 0; i < values_[tensor].size(); ++i) {
      const float wanted = -gradients_[tensor][i];
      if (values_[tensor][i] != wanted) ++rounded;
      ASSERT_NEAR(values_[tensor][i], wanted, bound * wanted);
    }
  }
  EXPECT_GT(rounded, 0);
}

TEST_F(EncodedPartsTest, AGradientThatIsStillComputedLeavesWhenItIsReleased) {
  LoadZeros();
  ASSERT_THAT(Pull(), IsOk());
  const auto push = client_->BeginPush(1, /*round=*/0, ViewsOf(gradients_));
  ASSERT_THAT(push, IsOk());
  for (size_t tensor = 0; tensor < gradients_.size(); ++tensor) {
    gradients_[tensor].assign(gradients_[tensor].size(), -7.0f);
    (*push)->Release(static_cast<int>(tensor));
  }
  ASSERT_THAT((*push)->Finish(), IsOk());
  ASSERT_THAT(Pull(), IsOk());
  for (const auto& values : values_) {
    EXPECT_EQ(values, std::vector<float>(values.size(), 7));
  }
}

}  // namespace
}  // namespace muster
