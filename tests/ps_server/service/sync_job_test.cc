// A whole synchronous job in one process: two shards, the coordinator, and
// workers that are threads. One of them dies half-way through a push.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/rpc/call_table.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/service/coordination_server.h"
#include "ps_server/service/shard_server.h"
#include "tests/ps_server/coordinator/coordinator_job.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

constexpr int kShards = 2;
constexpr int kWorkers = 3;
constexpr int64_t kElements = kBlockElements + 4;
constexpr int64_t kSteps = 30;
constexpr int64_t kFatalStep = 5;
constexpr int kDying = 2;

// A multiple of 6, so that the mean of 1, 2 or 3 is whole; other for each step
// of each worker.
float GradientOf(int worker, int64_t step) {
  return static_cast<float>(-6 * (kWorkers * step + worker + 1));
}

// The tokens that all workers saw. Thread-safe.
class TokenLog {
 public:
  void Add(const StepToken& token) {
    absl::MutexLock lock(&mu_);
    const auto [known, is_new] = tokens_.emplace(token.round(), token);
    if (is_new) return;
    EXPECT_EQ(known->second.SerializeAsString(), token.SerializeAsString());
  }
  std::map<int64_t, StepToken> tokens() const {
    absl::MutexLock lock(&mu_);
    return tokens_;
  }

 private:
  mutable absl::Mutex mu_;
  std::map<int64_t, StepToken> tokens_ ABSL_GUARDED_BY(mu_);
};

class SyncJobTest : public testing::Test {
 protected:
  SyncJobTest() {
    CoordinationServer::Options options;
    options.clock = &clock_;
    // Long enough for those who live on a busy machine.
    options.coordinator.worker_timeout = absl::Seconds(2);
    coordination_ = std::make_unique<CoordinationServer>(options);
    for (int i = 0; i < kShards; ++i) {
      ShardServer::Options shard;
      shard.clock = &clock_;
      shard.shard.incarnation = kPsIncarnation;
      shard.shard.ps_index = i;
      shards_.push_back(std::make_unique<ShardServer>(shard));
    }
  }

  static Sender SenderOf(int worker) {
    return MakeSender(worker, 100 + worker);
  }

  template <typename Reply, typename Shard, typename Owner, typename Request>
  absl::StatusOr<Reply> Ask(Shard& link,
                            void (Owner::*method)(Request, absl::Time,
                                                  ReplyCallback<Reply>),
                            Request request) {
    return AwaitReply<Reply>([&](ReplyCallback<Reply> done) {
      (link.*method)(request, clock_.Now() + absl::Seconds(30),
                     std::move(done));
    });
  }
  template <typename Reply, typename Shard, typename Owner, typename Request>
  absl::StatusOr<Reply> Ask(Shard& link,
                            void (Owner::*method)(const Request&, absl::Time,
                                                  ReplyCallback<Reply>),
                            const Request& request) {
    return AwaitReply<Reply>([&](ReplyCallback<Reply> done) {
      (link.*method)(request, clock_.Now() + absl::Seconds(30),
                     std::move(done));
    });
  }

  template <typename M>
  absl::StatusOr<typename M::Reply> Ask(Link& link, const M& row,
                                        const typename M::Request& request) {
    return AwaitCall(link, row, request, clock_.Now() + absl::Seconds(30));
  }

  // Everybody is known, and the model is loaded.
  void Prepare() {
    for (int worker = 0; worker < kWorkers; ++worker) {
      RegisterRequest request;
      request.set_protocol_version(kProtocolVersion);
      *request.mutable_sender() = SenderOf(worker);
      request.set_chief(worker == 0);
      ASSERT_THAT(Ask(*coordination_, kRegisterCall, request), IsOk());
    }
    for (const auto& shard : shards_) Load(*shard);
    BeginEpochRequest begin;
    *begin.mutable_sender() = SenderOf(0);
    ASSERT_THAT(Ask(*coordination_, kBeginEpochCall, begin), IsOk());
    CommitEpochRequest commit;
    *commit.mutable_sender() = SenderOf(0);
    commit.set_model_epoch(1);
    commit.set_batch_size(10);
    *commit.mutable_stop() = StopAtStep(kSteps);
    *commit.mutable_replication() = MakeSyncSpec(kWorkers, kWorkers);
    ASSERT_THAT(Ask(*coordination_, kCommitEpochCall, commit), IsOk());
  }

  void Load(ShardServer& shard) {
    for (int worker = 0; worker < kWorkers; ++worker) {
      ASSERT_THAT(Ask(shard, kHelloCall, MakeHello(SenderOf(worker))), IsOk());
    }
    DefineRequest define =
        MakeDefine(SenderOf(0), {MakeTensor("w", {kElements})});
    define.mutable_replication()->mutable_sync();
    ASSERT_THAT(Ask(shard, kDefineCall, define), IsOk());
    ASSERT_THAT(Ask(shard, &ShardServer::Load,
                    MakeLoad(SenderOf(0), {MakeSlice("w", 0, kElements)},
                             BytesOf(std::vector<float>(kElements, 0)))),
                IsOk());
    ASSERT_THAT(Ask(shard, kSealCall, MakeSeal(SenderOf(0))), IsOk());
  }

  absl::StatusOr<Frame<PullReply>> Pull(int shard, int worker,
                                        const StepToken& token) {
    PullRequest pull =
        MakePull(SenderOf(worker), {MakeSlice("w", 0, kElements)});
    *pull.mutable_token() = token;
    return Ask(*shards_[shard], &ShardServer::Pull, pull);
  }

  // Pushes both parts, the second one first on odd steps; whether it was late.
  bool Push(int shard, int worker, int64_t step, const StepToken& token,
            int64_t version) {
    bool late = false;
    for (const int32_t i : {0, 1}) {
      const auto part = static_cast<int32_t>((i + step) % 2);
      const int64_t begin = part * kBlockElements;
      const int64_t length = std::min(kBlockElements, kElements - begin);
      Frame<PushPart> push = MakePush(
          SenderOf(worker), step, {MakeSlice("w", begin, length)},
          BytesOf(std::vector<float>(length, GradientOf(worker, step))), part,
          /*parts=*/2);
      push.header.set_round(token.round());
      push.header.set_pulled_version(version);
      const auto reply = Ask(*shards_[shard], &ShardServer::Push, push);
      EXPECT_THAT(reply, IsOk());
      late |= reply.ok() && reply->header.late();
    }
    return late;
  }

  // The life of a worker.
  void Work(int worker) {
    StepRequest request;
    *request.mutable_sender() = SenderOf(worker);
    request.set_model_epoch(1);
    request.set_max_wait_ms(100);
    for (int64_t step = 0;;) {
      const auto reply = Ask(*coordination_, kStepCall, request);
      ASSERT_THAT(reply, IsOk());
      if (reply->phase() != RUNNING) return;
      if (!reply->granted()) continue;
      tokens_.Add(reply->token());
      ++step;
      bool late = false;
      for (int shard = 0; shard < kShards; ++shard) {
        const auto pulled = Pull(shard, worker, reply->token());
        ASSERT_THAT(pulled, IsOk());
        late |=
            Push(shard, worker, step, reply->token(), pulled->header.version());
        if (worker == kDying && step == kFatalStep) return;
      }
      request.set_step(step);
      request.set_round(reply->token().round());
      request.set_late(late);
      request.set_examples(10);
    }
  }

  MonotonicClock clock_;
  TokenLog tokens_;
  std::unique_ptr<CoordinationServer> coordination_;
  std::vector<std::unique_ptr<ShardServer>> shards_;
};

TEST_F(SyncJobTest, SumsAreThoseOfTheChosenOnEveryShard) {
  Prepare();
  std::vector<std::thread> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.emplace_back([this, i] { Work(i); });
  }
  for (std::thread& worker : workers) worker.join();

  PauseRoundsRequest hold;
  *hold.mutable_sender() = SenderOf(0);
  hold.set_model_epoch(1);
  hold.set_pause(true);
  const auto held = Ask(*coordination_, kPauseRoundsCall, hold);
  ASSERT_THAT(held, IsOk());
  ASSERT_EQ(held->state().global_step(), kSteps);
  tokens_.Add(held->token());

  float expected = 0;
  int64_t steps_of_dead = 0;
  const auto tokens = tokens_.tokens();
  for (int64_t round = 1; round <= kSteps; ++round) {
    const StepToken& token = tokens.at(round + 1);
    float sum = 0;
    for (const ChosenStep& chosen : token.chosen()) {
      const int worker = chosen.sender().task().index();
      sum += GradientOf(worker, chosen.step());
      if (worker == kDying) steps_of_dead = chosen.step();
    }
    expected -= sum / static_cast<float>(token.chosen_size());
  }
  EXPECT_LT(steps_of_dead, kFatalStep) << "its half step was chosen";
  for (int shard = 0; shard < kShards; ++shard) {
    const auto pulled = Pull(shard, 0, held->token());
    ASSERT_THAT(pulled, IsOk());
    EXPECT_EQ(pulled->header.version(), kSteps);
    EXPECT_EQ(ValuesOf<float>(pulled->data),
              std::vector<float>(kElements, expected));
  }
}

}  // namespace
}  // namespace muster
