// Error feedback over real shards: whatever becomes of pushes, and however they
// are rounded, no part of a gradient is lost or counts twice.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/cluster/placement.h"
#include "common/codec/codec.h"
#include "common/rpc/error_reason.h"
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
// Two parts on the second shard.
constexpr int64_t kSizes[] = {10, 5 * kBlockElements + 3};
// After so many gradients of zeros nothing is owed: each takes at least seven
// bits of what is left.
constexpr int kFlushes = 4;

// Refuses pushes of one step, as a shard does that has moved on. A part that
// is sent again has the same bytes.
class FencingLink : public LossyParameterLink {
 public:
  using LossyParameterLink::LossyParameterLink;

  void PushTo(std::shared_ptr<ValuePlace> place, Frame<PushPart> request,
              absl::Time deadline,
              ReplyCallback<Frame<PushReply>> done) override {
    if (request.header.step() == fenced_step) {
      return done(FencedError("the shard has moved on"));
    }
    if (request.header.step() == unanswered_step) {
      done = [done = std::move(done)](const absl::StatusOr<Frame<PushReply>>&) {
        done(absl::UnavailableError("the connection broke"));
      };
    }
    {
      absl::MutexLock lock(&mu_);
      const std::string bytes(request.data);
      const auto key =
          std::make_pair(request.header.step(), request.header.part());
      EXPECT_TRUE(sent_.emplace(key, bytes).first->second == bytes)
          << "step " << key.first << " part " << key.second;
    }
    LossyParameterLink::PushTo(std::move(place), std::move(request), deadline,
                               std::move(done));
  }

  int64_t fenced_step = -1;
  // The pushes of this step are taken, and their answers lost.
  int64_t unanswered_step = -1;

 private:
  absl::Mutex mu_;
  std::map<std::pair<int64_t, int32_t>, std::string> sent_ ABSL_GUARDED_BY(mu_);
};

// One worker: its client, and the gradients that it made.
struct Worker {
  Sender sender;
  std::unique_ptr<ParameterClient> client;
  std::vector<FencingLink*> links;
  std::vector<std::vector<float>> parameters;
  int64_t step = 0;
};

class ErrorFeedbackPushTest : public testing::TestWithParam<std::string> {
 protected:
  ErrorFeedbackPushTest() {
    for (int i = 0; i < kShards; ++i) {
      ShardServer::Options shard;
      shard.shard.incarnation = Incarnation(i);
      shard.shard.ps_index = i;
      shard.clock = &clock_;
      shards_.push_back(std::make_unique<ShardServer>(shard));
    }
    for (const int64_t size : kSizes) sums_.emplace_back(size, 0.0);
  }

  static uint64_t Incarnation(int shard) { return 11 + shard; }

  Worker MakeWorker(int index, const LossyParameterLink::Options& loss = {}) {
    Worker worker;
    worker.sender.mutable_task()->set_job("worker");
    worker.sender.mutable_task()->set_index(index);
    worker.sender.set_incarnation(50 + index);
    ParameterClient::Options options;
    options.clock = &clock_;
    options.sender = worker.sender;
    options.transfer.backoff.initial = absl::Milliseconds(1);
    options.transfer.backoff.max = absl::Milliseconds(4);
    options.transfer.give_up_after = give_up_after_;
    options.codec = FindCodec(GetParam()).value();
    options.error_feedback = true;
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (int i = 0; i < kShards; ++i) {
      auto link = std::make_unique<FencingLink>(shards_[i].get(), loss);
      worker.links.push_back(link.get());
      links.push_back(std::move(link));
      options.ps_names.push_back(absl::StrCat("/job:ps/task:", i));
    }
    worker.client =
        std::make_unique<ParameterClient>(options, std::move(links));
    std::vector<TensorDef> tensors;
    for (const int64_t size : kSizes) {
      worker.parameters.emplace_back(size, 0.0f);
      TensorDef& tensor = tensors.emplace_back();
      tensor.set_name(absl::StrCat("tensor", tensors.size()));
      tensor.add_shape(size);
      tensor.set_dtype(FLOAT32);
    }
    EXPECT_THAT(
        worker.client->SetModel(tensors, PlaceWhole(tensors, {0, 1}).value()),
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
    Enter(worker, 1);
    return worker;
  }

  static void Enter(Worker& worker, int64_t epoch) {
    worker.client->SetEpoch(epoch, {Incarnation(0), Incarnation(1)});
  }

  // Zeros; an update adds the gradient.
  void Load(Worker& chief, const ReplicationSpec& replication = {}) {
    ModelDefinition definition;
    definition.optimizer.set_name("sgd");
    Attr* const rate = definition.optimizer.add_attr();
    rate->set_name("learning_rate");
    rate->set_f(1.0);
    definition.replication = replication;
    std::vector<std::vector<float>> zeros;
    for (const int64_t size : kSizes) zeros.emplace_back(size, 0.0f);
    ASSERT_THAT(chief.client->chief().LoadModel(definition, ViewsOf(zeros)),
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

  absl::Status Pull(Worker& worker, const StepToken& token = {}) {
    worker.client->SettlePush(token);
    std::vector<MutableTensorView> views;
    for (auto& values : worker.parameters) {
      views.push_back(MutableViewOf(absl::MakeSpan(values)));
    }
    return worker.client->PullAndWait(views, token);
  }

  // Whole numbers of 12 bits, others for each worker, step and value.
  static std::vector<std::vector<float>> GradientOf(const Worker& worker,
                                                    int64_t step) {
    std::vector<std::vector<float>> gradient;
    for (const int64_t size : kSizes) {
      std::vector<float>& values = gradient.emplace_back(size);
      for (int64_t i = 0; i < size; ++i) {
        values[i] = static_cast<float>(
            (i * 37 + step * 911 + worker.sender.task().index() * 401) % 4093);
      }
    }
    return gradient;
  }

  // Pushes the gradient of `number` as the worker's next step, and counts it
  // unless it fails. Without an answer it is resumed, over links that bring
  // one.
  absl::StatusOr<PushResult> Push(Worker& worker, int64_t number,
                                  int64_t round = 0) {
    const auto gradient = GradientOf(worker, number);
    const auto push =
        worker.client->BeginPush(++worker.step, round, ViewsOf(gradient));
    if (!push.ok()) return push.status();
    absl::StatusOr<PushResult> outcome = (*push)->Finish();
    while ((*push)->may_resume()) {
      for (FencingLink* link : worker.links) link->unanswered_step = -1;
      worker.client->Resume(push->get());
      outcome = (*push)->Finish();
    }
    if (!outcome.ok()) return outcome;
    for (size_t tensor = 0; tensor < sums_.size(); ++tensor) {
      for (size_t i = 0; i < sums_[tensor].size(); ++i) {
        sums_[tensor][i] += gradient[tensor][i];
      }
    }
    return outcome;
  }

  absl::StatusOr<PushResult> PushZeros(Worker& worker, int64_t round = 0) {
    std::vector<std::vector<float>> zeros;
    for (const int64_t size : kSizes) zeros.emplace_back(size, 0.0f);
    return worker.client->PushAndWait(++worker.step, ViewsOf(zeros), round);
  }

  // The parameters are minus the sums.
  void ExpectSums(const Worker& worker) {
    for (size_t tensor = 0; tensor < sums_.size(); ++tensor) {
      for (size_t i = 0; i < sums_[tensor].size(); ++i) {
        ASSERT_EQ(worker.parameters[tensor][i], -sums_[tensor][i])
            << "tensor " << tensor << " value " << i;
      }
    }
  }
  bool AreSums(const Worker& worker) {
    for (size_t tensor = 0; tensor < sums_.size(); ++tensor) {
      for (size_t i = 0; i < sums_[tensor].size(); ++i) {
        if (worker.parameters[tensor][i] != -sums_[tensor][i]) return false;
      }
    }
    return true;
  }

  const MonotonicClock clock_{};
  absl::Duration give_up_after_ = TransferOptions().give_up_after;
  std::vector<std::unique_ptr<ShardServer>> shards_;
  // The sums of what was pushed without a failure.
  std::vector<std::vector<double>> sums_;
};

TEST_P(ErrorFeedbackPushTest, OverALossyLinkEveryBitArrivesOnce) {
  LossyParameterLink::Options loss;
  loss.seed = 20261122;
  loss.lose_request = loss.lose_reply = loss.repeat = 0.15;
  Worker worker = MakeWorker(0, loss);
  Load(worker);
  int64_t retries = 0;
  for (int step = 1; step <= 10; ++step) {
    ASSERT_THAT(Pull(worker), IsOk());
    const auto outcome = Push(worker, step);
    ASSERT_THAT(outcome, IsOk());
    retries += outcome->retries;
  }
  EXPECT_GT(retries, 0);
  ASSERT_THAT(Pull(worker), IsOk());
  EXPECT_FALSE(AreSums(worker)) << "nothing was rounded: no test";
  for (int i = 0; i < kFlushes; ++i) ASSERT_THAT(PushZeros(worker), IsOk());
  ASSERT_THAT(Pull(worker), IsOk());
  ExpectSums(worker);
}

TEST_P(ErrorFeedbackPushTest, AFencedPushThatIsMadeAgainCountsOnce) {
  Worker worker = MakeWorker(0);
  Load(worker);
  for (int step = 1; step <= 6; ++step) {
    ASSERT_THAT(Pull(worker), IsOk());
    if (step % 2 == 0) {
      // By the first shard it is sent to: the other may have what it got.
      for (FencingLink* link : worker.links)
        link->fenced_step = worker.step + 1;
      ASSERT_THAT(Push(worker, step), StatusIs(absl::StatusCode::kAborted));
      Enter(worker, 1);
      ASSERT_THAT(Pull(worker), IsOk());
    }
    ASSERT_THAT(Push(worker, step), IsOk());
  }
  for (int i = 0; i < kFlushes; ++i) ASSERT_THAT(PushZeros(worker), IsOk());
  ASSERT_THAT(Pull(worker), IsOk());
  ExpectSums(worker);
}

TEST_P(ErrorFeedbackPushTest, AResumedPushLeavesItsResidualOnce) {
  give_up_after_ = absl::ZeroDuration();
  Worker worker = MakeWorker(0);
  Load(worker);
  for (int step = 1; step <= 6; ++step) {
    ASSERT_THAT(Pull(worker), IsOk());
    if (step % 2 == 0) worker.links[1]->unanswered_step = worker.step + 1;
    const auto outcome = Push(worker, step);
    ASSERT_THAT(outcome, IsOk());
    EXPECT_EQ(outcome->duplicate_parts > 0, step % 2 == 0);
  }
  for (int i = 0; i < kFlushes; ++i) ASSERT_THAT(PushZeros(worker), IsOk());
  ASSERT_THAT(Pull(worker), IsOk());
  ExpectSums(worker);
}

TEST_P(ErrorFeedbackPushTest, AnotherEpochIsOwedNothing) {
  Worker worker = MakeWorker(0);
  Load(worker);
  ASSERT_THAT(Pull(worker), IsOk());
  ASSERT_THAT(Push(worker, 1), IsOk());
  Enter(worker, 2);
  Load(worker);
  ASSERT_THAT(Pull(worker), IsOk());
  ASSERT_THAT(PushZeros(worker), IsOk());
  ASSERT_THAT(Pull(worker), IsOk());
  for (const auto& values : worker.parameters) {
    EXPECT_EQ(values, std::vector<float>(values.size(), 0.0f));
  }
}

// ---- Synchronous replication; one of two workers is in an update ------------

class ErrorFeedbackSyncTest : public ErrorFeedbackPushTest {
 protected:
  void SetUp() override {
    ReplicationSpec sync;
    sync.mutable_sync();
    Load(a_, sync);
  }

  // For the round after the one of which `chosen` is the only step.
  static StepToken After(int64_t round, const Worker& chosen, int64_t step,
                         int64_t own_chosen_step) {
    StepToken token;
    token.set_round(round + 1);
    *token.add_chosen()->mutable_sender() = chosen.sender;
    token.mutable_chosen(0)->set_step(step);
    token.set_chosen_step(own_chosen_step);
    return token;
  }
  // Rounds of `worker` alone, until it owes nothing.
  void Flush(Worker& worker, StepToken token) {
    for (int i = 0; i < kFlushes; ++i) {
      ASSERT_THAT(Pull(worker, token), IsOk());
      ASSERT_THAT(PushZeros(worker, token.round()), IsOk());
      token = After(token.round(), worker, worker.step, worker.step);
    }
    ASSERT_THAT(Pull(worker, token), IsOk());
  }

  Worker a_ = MakeWorker(0);
  Worker b_ = MakeWorker(1);
};

TEST_P(ErrorFeedbackSyncTest, AStepThatWasNotChosenComesWithALaterOne) {
  StepToken first;
  first.set_round(1);
  for (Worker* worker : {&a_, &b_}) {
    ASSERT_THAT(Pull(*worker, first), IsOk());
    ASSERT_THAT(Push(*worker, 1, 1), IsOk());
  }
  // Round 1 took b; a is told.
  const StepToken second = After(1, b_, 1, /*own_chosen_step=*/0);
  ASSERT_THAT(Pull(a_, second), IsOk());
  ASSERT_THAT(Push(a_, 2, 2), IsOk());
  Flush(a_, After(2, a_, 2, 2));
  StepToken next = After(2 + kFlushes, a_, a_.step, 1);
  Flush(b_, next);
  ExpectSums(b_);
}

TEST_P(ErrorFeedbackSyncTest, ALateStepComesWithALaterOne) {
  StepToken first;
  first.set_round(1);
  ASSERT_THAT(Pull(a_, first), IsOk());
  ASSERT_THAT(Pull(b_, first), IsOk());
  ASSERT_THAT(Push(b_, 1, 1), IsOk());
  ASSERT_THAT(Pull(b_, After(1, b_, 1, 1)), IsOk());
  const auto late = Push(a_, 1, 1);
  ASSERT_THAT(late, IsOk());
  EXPECT_TRUE(late->late);
  Flush(a_, After(1, b_, 1, 0));
  Flush(b_, After(1 + kFlushes, a_, a_.step, 1));
  ExpectSums(b_);
}

INSTANTIATE_TEST_SUITE_P(Codecs, ErrorFeedbackPushTest,
                         testing::ValuesIn(CodecRegistry::Names()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Codecs, ErrorFeedbackSyncTest,
                         testing::ValuesIn(CodecRegistry::Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace muster
