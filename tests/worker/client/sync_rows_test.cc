// Rows of sparse tables in synchronous replication, on shards as they run in
// production, of which two have no tensor.
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/cluster/placement.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_server.h"
#include "tests/testing/lossy_parameter_link.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/parameter_client.h"

namespace muster {
namespace {

using ::testing::Each;

constexpr int kShards = 3;

struct Worker {
  Sender sender;
  std::unique_ptr<ParameterClient> client;
  std::vector<float> w = {0, 0};
};

class SyncRowsTest : public testing::Test {
 protected:
  SyncRowsTest() {
    for (int i = 0; i < kShards; ++i) {
      ShardServer::Options shard;
      shard.shard.incarnation = 11 + i;
      shard.shard.ps_index = i;
      shard.clock = &clock_;
      shards_.push_back(std::make_unique<ShardServer>(shard));
    }
  }

  Worker MakeWorker(int index) {
    Worker worker;
    worker.sender.mutable_task()->set_job("worker");
    worker.sender.mutable_task()->set_index(index);
    worker.sender.set_incarnation(50 + index);
    ParameterClient::Options options;
    options.clock = &clock_;
    options.sender = worker.sender;
    options.transfer.backoff.initial = absl::Milliseconds(1);
    options.transfer.backoff.max = absl::Milliseconds(4);
    LossyParameterLink::Options loss;
    loss.seed = 20261129 + index;
    loss.lose_request = loss.lose_reply = loss.repeat = 0.1;
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (int i = 0; i < kShards; ++i) {
      links.push_back(
          std::make_unique<LossyParameterLink>(shards_[i].get(), loss));
      options.ps_names.push_back(absl::StrCat("/job:ps/task:", i));
    }
    worker.client =
        std::make_unique<ParameterClient>(options, std::move(links));
    std::vector<TensorDef> tensors(1);
    tensors[0].set_name("w");
    tensors[0].add_shape(2);
    tensors[0].set_dtype(FLOAT32);
    TableDef table;
    table.set_name("user");
    table.set_dim(1);
    *table.mutable_optimizer() = Sgd();
    table.set_initial(ZEROS);
    EXPECT_THAT(worker.client->SetModel(
                    tensors, PlaceWhole(tensors, {0}).value(), {table}),
                IsOk());
    for (int i = 0; i < kShards; ++i) {
      HelloRequest hello;
      hello.set_protocol_version(kProtocolVersion);
      *hello.mutable_sender() = worker.sender;
      hello.set_ps_index(i);
      worker.client->Hello(i, hello,
                           [](const absl::StatusOr<HelloReply>& reply) {
                             EXPECT_THAT(reply, IsOk());
                           });
    }
    worker.client->SetEpoch(1, {11, 12, 13});
    return worker;
  }

  // A gradient is subtracted.
  static OptimizerSpec Sgd() {
    OptimizerSpec optimizer;
    optimizer.set_name("sgd");
    Attr* const rate = optimizer.add_attr();
    rate->set_name("learning_rate");
    rate->set_f(1);
    return optimizer;
  }

  // The update before `round` is the mean of the workers' steps of the round
  // before.
  StepToken TokenOf(int64_t round, absl::Span<const Worker> workers) {
    StepToken token;
    token.set_round(round);
    for (const Worker& worker : workers) {
      if (round == 1) break;
      ChosenStep& chosen = *token.add_chosen();
      *chosen.mutable_sender() = worker.sender;
      chosen.set_step(round - 1);
    }
    return token;
  }

  // Pushes `value` to these rows, and ones to "w".
  void Step(Worker& worker, const StepToken& token,
            const std::vector<int64_t>& ids, float value) {
    ASSERT_THAT(worker.client->PullAndWait(
                    {MutableViewOf(absl::MakeSpan(worker.w))}, token),
                IsOk());
    const std::vector<float> ones = {1, 1};
    const std::vector<float> values(ids.size(), value);
    const std::vector<RowGradients> gradients = {{0, ids, values}};
    const auto pushed = worker.client->PushAndWait(
        token.round(), {ViewOf(absl::MakeConstSpan(ones))}, token.round(), {},
        {gradients, {}});
    ASSERT_THAT(pushed, IsOk());
    EXPECT_FALSE(pushed->late);
  }

  const MonotonicClock clock_{};
  std::vector<std::unique_ptr<ShardServer>> shards_;
};

TEST_F(SyncRowsTest, ARoundsRows_AreTheirSumByTheNumberOfWorkers) {
  std::vector<Worker> workers;
  workers.push_back(MakeWorker(0));
  workers.push_back(MakeWorker(1));
  ModelDefinition definition;
  definition.optimizer = Sgd();
  definition.replication.mutable_sync();
  ASSERT_THAT(workers[0].client->chief().LoadModel(
                  definition, {ViewOf(absl::MakeConstSpan(workers[0].w))}),
              IsOk());
  // One of both, one of each: rows of all ps tasks.
  std::vector<int64_t> both;
  std::vector<int64_t> first;
  std::vector<int64_t> second;
  for (int64_t id = 0; id < 30; ++id) {
    both.push_back(id);
    first.push_back(100 + id);
    second.push_back(-100 - id);
  }
  std::vector<int64_t> of_first = both;
  of_first.insert(of_first.end(), first.begin(), first.end());
  std::vector<int64_t> of_second = second;
  of_second.insert(of_second.end(), both.begin(), both.end());
  constexpr int kRounds = 10;
  for (int round = 1; round <= kRounds; ++round) {
    const StepToken token = TokenOf(round, workers);
    Step(workers[0], token, of_first, 2);
    Step(workers[1], token, of_second, 6);
  }
  const StepToken last = TokenOf(kRounds + 1, workers);
  std::vector<float> rows(both.size());
  const auto values = [&](const std::vector<int64_t>& ids) {
    EXPECT_THAT(
        workers[1].client->PullRows({{0, ids, absl::MakeSpan(rows)}}, last),
        IsOk());
    return rows;
  };
  EXPECT_THAT(values(both), Each(-4 * kRounds));
  EXPECT_THAT(values(first), Each(-1 * kRounds));
  EXPECT_THAT(values(second), Each(-3 * kRounds));
}

}  // namespace
}  // namespace muster
