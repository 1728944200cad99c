// result.json of a job in which this process was not alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/rpc/call_table.h"
#include "ps_server/service/coordination_server.h"
#include "ps_server/service/shard_server.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/task/local_training.h"
#include "worker/session/session_messages.h"
#include "worker/task/worker_task.h"

namespace muster {
namespace {

constexpr int64_t kBatch = 16;
constexpr int64_t kSteps = 5;
// Those of workers that are in no list any more.
constexpr int64_t kOtherExamples = 1000;
// Those of earlier starts of this worker.
constexpr int64_t kOtherPushes = 500;
// This one's.
constexpr int64_t kActiveSteps = 6;
constexpr double kActiveSeconds = 2;

constexpr char kTraining[] = R"pb(
  model {
    name: "softmax_regression"
    input_shape: [ 16 ]
    layer {
      name: "logits"
      type: "dense"
      attr { name: "units" i: 4 }
    }
    layer { name: "loss" type: "softmax_cross_entropy" }
  }
  input {
    type: "synthetic"
    synthetic_examples: 320
    synthetic_test_examples: 64
    synthetic_classes: 4
  }
  optimizer { name: "sgd" }
)pb";

// Its states tell of others, too.
class CoordinationOfMany : public CoordinationServer {
 public:
  using CoordinationServer::CoordinationServer;

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    const auto state = [](auto* reply) { return reply->mutable_state(); };
    if (method == kRegisterCall) {
      done = Telling(kRegisterCall, state, std::move(done));
    } else if (method == kCommitEpochCall) {
      done = Telling(kCommitEpochCall, state, std::move(done));
    } else if (method == kBeginEpochCall) {
      done = Telling(kBeginEpochCall, state, std::move(done));
    } else if (method == kFinishCall) {
      done = Telling(kFinishCall, state, std::move(done));
    } else if (method == kWatchCall) {
      done = Telling(
          kWatchCall, [](JobState* reply) { return reply; }, std::move(done));
    }
    CoordinationServer::CallBytes(method, std::move(request), deadline,
                                  std::move(done));
  }

 private:
  template <typename M, typename StateOf>
  static ReplyCallback<std::string> Telling(const M& row, StateOf state_of,
                                            ReplyCallback<std::string> done) {
    using Reply = typename M::Reply;
    return ParseReply(row, [state_of, done = SerializeReply<Reply>(std::move(
                                          done))](absl::StatusOr<Reply> reply) {
      if (reply.ok()) AddOthers(state_of(&*reply));
      done(std::move(reply));
    });
  }

  static void AddOthers(JobState* state) {
    state->set_examples(state->examples() + kOtherExamples);
    for (WorkerState& worker : *state->mutable_workers()) {
      worker.set_staleness_count(worker.staleness_count() + kOtherPushes);
      worker.set_active_steps(kActiveSteps);
      worker.set_active_s(kActiveSeconds);
    }
  }
};

class WorkerTaskResultTest : public LocalTraining {
 protected:
  void Train(const std::string& train_dir) {
    const auto options =
        MakeOptions(kTraining,
                    {absl::StrCat("stop.steps=", kSteps),
                     absl::StrCat("input.batch_size=", kBatch)},
                    train_dir);
    ASSERT_THAT(options, IsOk());
    ShardServer::Options shard;
    shard.shard.incarnation = 1;
    shard.clock = options->clock;
    CoordinationServer::Options coordination;
    coordination.clock = options->clock;
    WorkerLinks links;
    links.shards.push_back(std::make_unique<ShardServer>(shard));
    links.coordination = std::make_unique<CoordinationOfMany>(coordination);
    const auto task = WorkerTask::Create(*options, std::move(links));
    ASSERT_THAT(task, IsOk());
    ASSERT_EQ((*task)->Run(), kExitDone);
  }
};

TEST_F(WorkerTaskResultTest, ExamplesAreThoseOfTheWholeRun) {
  const std::string train_dir = NewTrainDir("train");
  Train(train_dir);
  const auto result = ReadResult(train_dir);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("examples")->text,
            absl::StrCat(kSteps * kBatch + kOtherExamples));
}

TEST_F(WorkerTaskResultTest, AWorkersRateIsThatOfItsLastStart) {
  const std::string train_dir = NewTrainDir("train");
  Train(train_dir);
  const auto result = ReadResult(train_dir);
  ASSERT_THAT(result, IsOk());
  const JsonValue& worker = result->Find("workers")->items.at(0);
  EXPECT_EQ(std::stod(worker.Find("steps_per_s")->text),
            kActiveSteps / kActiveSeconds);
}

}  // namespace
}  // namespace muster
