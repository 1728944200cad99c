// Batch norm's moving averages, of several asynchronous workers and a shard.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/cluster/placement.h"
#include "common/rpc/protocol.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_server.h"
#include "tests/testing/forwarding_parameter_link.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/counting_data_set.h"
#include "tests/worker/input/leases.h"
#include "tests/worker/model/test_models.h"
#include "worker/client/parameter_client.h"
#include "worker/step/make_exchange.h"
#include "worker/step/train_loop.h"

namespace muster {
namespace {

constexpr int64_t kClasses = 64;
constexpr int64_t kRows = 4;
constexpr int64_t kSteps = 60;
constexpr uint64_t kIncarnation = 7;
// 1 - momentum is exact, and so is what is pushed over it.
constexpr float kDecay = 0.5F;
// Scale, shift, moving mean, moving variance, weights and bias.
constexpr int kTensors = 6;
constexpr int kMean = 2;
constexpr int kVariance = 3;

using Values = std::vector<float>;

ModelSpec NormedModel() {
  return ParseModel(absl::StrCat(
      "input_shape: 2 layer { name: 'norm' type: 'batch_norm' attr { name: "
      "'momentum' f: 0.5 } } layer { name: 'logits' type: 'dense' attr { name: "
      "'units' i: ",
      kClasses, " } } layer { name: 'loss' type: 'softmax_cross_entropy' }"));
}

// One worker, each step of which is a call.
class Worker {
 public:
  Worker(int index, int num_workers, int pipeline_depth, ShardServer* shard)
      : index_(index), num_workers_(num_workers), backend_(MakeBackend("ref")) {
    CompileOptions compile;
    compile.backend = backend_.get();
    compile.batch_size = kRows;
    model_ = Compile(NormedModel(), compile);
    TowerGroup::Options towers;
    towers.towers.push_back({"ref:0", model_.get()});
    towers_ = std::make_unique<TowerGroup>(towers);
    Connect(index, shard);
    ExchangeOptions exchange;
    exchange.client = client_.get();
    exchange.towers = towers_.get();
    exchange.clock = &clock_;
    exchange.replication.mutable_async()->set_pipeline_depth(pipeline_depth);
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

  void LoadModel() {
    EXPECT_THAT(model_->InitializeParameters(/*seed=*/1), IsOk());
    ModelDefinition definition;
    definition.optimizer.set_name("sgd");
    definition.replication.mutable_async();
    std::vector<TensorView> values;
    for (int i = 0; i < kTensors; ++i) {
      values.push_back(ViewOf(absl::Span<const float>(model_->parameter(i))));
    }
    EXPECT_THAT(client_->chief().LoadModel(definition, values), IsOk());
  }

  // Returns what a step pushed to the averages, mean and variance.
  std::vector<Values> Run(int64_t step) {
    std::vector<Values> pushed;
    // The workers' steps follow each other.
    const int64_t stride = num_workers_ * kRows;
    const int64_t first = (step - 1) * stride + index_ * kRows;
    EXPECT_THAT(
        loop_->Run(step, {StepToken(), LeasesFrom(first, kRows, 2, stride), {}},
                   [&pushed](const ComputedStep& computed) {
                     for (const int i : {kMean, kVariance}) {
                       const auto& gradient = computed.tensors[i].gradient;
                       pushed.emplace_back(gradient.begin(), gradient.end());
                     }
                     return PushDecision::kPush;
                   }),
        IsOk());
    return pushed;
  }

  // The shard's averages.
  std::vector<Values> Pull() {
    std::vector<Values> values;
    std::vector<MutableTensorView> views;
    for (int i = 0; i < kTensors; ++i) {
      values.emplace_back(model_->parameter(i).size());
    }
    for (Values& tensor : values) {
      views.push_back(MutableViewOf(absl::MakeSpan(tensor)));
    }
    EXPECT_THAT(client_->PullAndWait(views), IsOk());
    return {values[kMean], values[kVariance]};
  }

 private:
  void Connect(int index, ShardServer* shard) {
    std::vector<std::unique_ptr<ParameterLink>> links;
    links.push_back(std::make_unique<ForwardingParameterLink>(shard));
    ParameterClient::Options options;
    options.ps_names = {"/job:ps/task:0"};
    options.clock = &clock_;
    options.sender.mutable_task()->set_job("worker");
    options.sender.mutable_task()->set_index(index);
    options.sender.set_incarnation(index + 1);
    client_ = std::make_unique<ParameterClient>(options, std::move(links));
    HelloRequest hello;
    hello.set_protocol_version(kProtocolVersion);
    *hello.mutable_sender() = options.sender;
    client_->Hello(0, hello,
                   [](const auto& reply) { EXPECT_THAT(reply, IsOk()); });
    EXPECT_THAT(client_->SetModel(model_->parameters(),
                                  PlaceWhole(model_->parameters(),
                                             std::vector<int>(kTensors, 0))
                                      .value()),
                IsOk());
    client_->SetEpoch(1, {kIncarnation});
  }

  const int index_;
  const int num_workers_;
  const MonotonicClock clock_{};
  const CountingDataSet data_set_{kClasses};
  const std::unique_ptr<Backend> backend_;
  std::unique_ptr<CompiledModel> model_;
  std::unique_ptr<TowerGroup> towers_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<StepExchange> exchange_;
  std::unique_ptr<TrainLoop> loop_;
};

// Workers, pipeline depth.
class MovingAveragesTest : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  MovingAveragesTest() {
    const auto [num_workers, pipeline_depth] = GetParam();
    ShardServer::Options options;
    options.shard.incarnation = kIncarnation;
    options.clock = &clock_;
    shard_ = std::make_unique<ShardServer>(options);
    for (int i = 0; i < num_workers; ++i) {
      workers_.push_back(std::make_unique<Worker>(
          i, num_workers, pipeline_depth, shard_.get()));
    }
    workers_[0]->LoadModel();
  }

  const MonotonicClock clock_{};
  std::unique_ptr<ShardServer> shard_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

// The workers take turns, so that each computes from values that are a whole
// turn old; pipelined, two.
TEST_P(MovingAveragesTest, LieBetweenWhatWasPushed) {
  std::vector<Values> wanted = workers_[0]->Pull();
  std::vector<Values> smallest = wanted;
  std::vector<Values> largest = wanted;
  for (int64_t step = 1; step <= kSteps; ++step) {
    for (const auto& worker : workers_) {
      const std::vector<Values> pushed = worker->Run(step);
      const std::vector<Values> found = worker->Pull();
      for (const int i : {0, 1}) {
        for (size_t k = 0; k < pushed[i].size(); ++k) {
          // Exact but for the sum.
          wanted[i][k] = wanted[i][k] * (1 - kDecay) + pushed[i][k];
          const float statistic = pushed[i][k] / kDecay;
          smallest[i][k] = std::min(smallest[i][k], statistic);
          largest[i][k] = std::max(largest[i][k], statistic);
          ASSERT_EQ(found[i][k], wanted[i][k]) << "step " << step;
          ASSERT_GE(found[i][k], smallest[i][k]) << "step " << step;
          ASSERT_LE(found[i][k], largest[i][k]) << "step " << step;
        }
      }
      for (const float variance : found[1]) ASSERT_GE(variance, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, MovingAveragesTest,
                         testing::Combine(testing::Values(1, 4, 8),
                                          testing::Values(1, 2)));

}  // namespace
}  // namespace muster
