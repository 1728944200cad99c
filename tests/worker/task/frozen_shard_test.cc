// A worker of two shards, one of which has nothing but what is frozen.
// Gradients leave in mid-backward.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/cluster/placement.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_server.h"
#include "tests/testing/forwarding_parameter_link.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/counting_data_set.h"
#include "tests/worker/model/test_models.h"
#include "tests/worker/step/grants.h"
#include "worker/client/parameter_client.h"
#include "worker/step/make_exchange.h"
#include "worker/step/train_loop.h"

namespace muster {
namespace {

constexpr int64_t kClasses = 8;
constexpr int64_t kRows = 4;
constexpr uint64_t kIncarnations[] = {7, 8};

// Its tensors, and the shard of each.
constexpr char kModel[] = R"pb(
  input_shape: 2
  layer {
    name: "first"
    type: "dense"
    freeze: true
    attr { name: "units" i: 4 }
  }
  layer {
    name: "second"
    type: "dense"
    attr { name: "units" i: 4 }
  }
  layer {
    name: "logits"
    type: "dense"
    attr { name: "units" i: 8 }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
  freeze_pattern: "second/bias"
)pb";
const std::vector<int>& Tasks() {
  static const auto& tasks = *new std::vector<int>{0, 0, 1, 1, 1, 1};
  return tasks;
}
constexpr bool kIsFrozen[] = {true, true, false, true, false, false};

using Values = std::vector<std::vector<float>>;

enum class Mode { kAsync, kPipelined, kSync };

class FrozenShardTest : public testing::TestWithParam<Mode> {
 protected:
  FrozenShardTest() : backend_(MakeBackend("ref")) {
    CompileOptions compile;
    compile.backend = backend_.get();
    compile.batch_size = kRows;
    model_ = Compile(ParseModel(kModel), compile);
    TowerGroup::Options towers;
    towers.towers.push_back({"ref:0", model_.get()});
    towers_ = std::make_unique<TowerGroup>(towers);
    Connect();
    if (GetParam() == Mode::kSync) {
      definition_.replication.mutable_sync();
    } else {
      definition_.replication.mutable_async()->set_pipeline_depth(
          GetParam() == Mode::kPipelined ? 2 : 1);
    }
    definition_.optimizer.set_name("momentum");
    LoadModel();
    MakeLoop();
  }

  void Connect() {
    ParameterClient::Options options;
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (const uint64_t incarnation : kIncarnations) {
      ShardServer::Options shard;
      shard.shard.incarnation = incarnation;
      shard.clock = &clock_;
      shards_.push_back(std::make_unique<ShardServer>(shard));
      links.push_back(
          std::make_unique<ForwardingParameterLink>(shards_.back().get()));
      options.ps_names.push_back("/job:ps/task");
    }
    options.clock = &clock_;
    options.sender.mutable_task()->set_job("worker");
    options.sender.set_incarnation(1);
    sender_ = options.sender;
    client_ = std::make_unique<ParameterClient>(options, std::move(links));
    HelloRequest hello;
    hello.set_protocol_version(kProtocolVersion);
    *hello.mutable_sender() = options.sender;
    for (const int ps : {0, 1}) {
      hello.set_ps_index(ps);
      client_->Hello(ps, hello,
                     [](const auto& reply) { EXPECT_THAT(reply, IsOk()); });
    }
    EXPECT_THAT(
        client_->SetModel(model_->parameters(),
                          PlaceWhole(model_->parameters(), Tasks()).value()),
        IsOk());
    client_->SetEpoch(1, kIncarnations);
  }

  void LoadModel() {
    EXPECT_THAT(model_->InitializeParameters(/*seed=*/1), IsOk());
    std::vector<TensorView> values;
    for (size_t i = 0; i < Tasks().size(); ++i) {
      const absl::Span<const float> parameter = model_->parameter(i);
      values.push_back(ViewOf(parameter));
    }
    EXPECT_THAT(client_->chief().LoadModel(definition_, values), IsOk());
  }

  void MakeLoop() {
    ExchangeOptions exchange;
    exchange.client = client_.get();
    exchange.towers = towers_.get();
    exchange.clock = &clock_;
    exchange.replication = definition_.replication;
    exchange.may_push_early = true;
    exchange_ = MakeStepExchange(exchange);
    TrainLoop::Options options;
    options.exchange = exchange_.get();
    options.towers = towers_.get();
    options.data_set = &data_set_;
    options.clock = &clock_;
    options.input.batch_size = kRows;
    auto loop = TrainLoop::Create(options);
    EXPECT_THAT(loop, IsOk());
    loop_ = *std::move(loop);
  }

  StepToken TokenOf(int64_t step) const {
    StepToken token;
    if (GetParam() != Mode::kSync) return token;
    token.set_round(step);
    if (step == 1) return token;
    ChosenStep* const chosen = token.add_chosen();
    *chosen->mutable_sender() = sender_;
    chosen->set_step(step - 1);
    return token;
  }

  Values Pull(int64_t step) {
    Values values;
    std::vector<MutableTensorView> views;
    for (size_t i = 0; i < Tasks().size(); ++i) {
      values.emplace_back(model_->parameter(i).size());
    }
    for (std::vector<float>& tensor : values) {
      views.push_back(MutableViewOf(absl::MakeSpan(tensor)));
    }
    EXPECT_THAT(client_->PullAndWait(views, TokenOf(step)), IsOk());
    return values;
  }

  const MonotonicClock clock_{};
  const CountingDataSet data_set_{kClasses};
  const std::unique_ptr<Backend> backend_;
  std::unique_ptr<CompiledModel> model_;
  std::unique_ptr<TowerGroup> towers_;
  std::vector<std::unique_ptr<ShardServer>> shards_;
  Sender sender_;
  ModelDefinition definition_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<StepExchange> exchange_;
  std::unique_ptr<TrainLoop> loop_;
};

TEST_P(FrozenShardTest, OnlyWhatIsTrainedIsPushed) {
  const Values before = Pull(/*step=*/1);
  constexpr int64_t kSteps = 5;
  for (int64_t step = 1; step <= kSteps; ++step) {
    EXPECT_THAT(loop_->Run(step, GrantOf(step, kRows, TokenOf(step)),
                           [](const ComputedStep& computed) {
                             for (size_t i = 0; i < Tasks().size(); ++i) {
                               EXPECT_EQ(computed.tensors[i].gradient.empty(),
                                         kIsFrozen[i]);
                             }
                             return PushDecision::kPush;
                           }),
                IsOk());
  }
  const Values after = Pull(kSteps + 1);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i] == before[i], kIsFrozen[i]) << i;
    if (!kIsFrozen[i]) continue;
    // The steps were computed from these.
    EXPECT_THAT(model_->parameter(i), testing::ElementsAreArray(before[i]));
  }
  // The bytes of "second/weights", and of "logits".
  EXPECT_EQ(exchange_->bytes().sent, kSteps * (16 + 32 + 8) * 4);
}

INSTANTIATE_TEST_SUITE_P(Modes, FrozenShardTest,
                         testing::Values(Mode::kAsync, Mode::kPipelined,
                                         Mode::kSync));

}  // namespace
}  // namespace muster
