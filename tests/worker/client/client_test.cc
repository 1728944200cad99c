// A user's own model over shards as they run in production.
#include "worker/client/client.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_server.h"
#include "tests/testing/forwarding_parameter_link.h"
#include "tests/testing/lossy_parameter_link.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Jumps ahead when it is told to.
class JumpingClock : public MonotonicClock {
 public:
  absl::Time Now() const override {
    absl::MutexLock lock(&mu_);
    return MonotonicClock::Now() + ahead_;
  }
  void Jump(absl::Duration by) {
    absl::MutexLock lock(&mu_);
    ahead_ += by;
  }

 private:
  mutable absl::Mutex mu_;
  absl::Duration ahead_ ABSL_GUARDED_BY(mu_);
};

// Loses the first answers to pushes, each after longer than a transfer waits.
class SilentLink : public ForwardingParameterLink {
 public:
  SilentLink(ParameterLink* link, JumpingClock* clock, std::atomic<int>* lost)
      : ForwardingParameterLink(link), clock_(clock), lost_(lost) {}

  void PushTo(std::shared_ptr<ValuePlace> place, Frame<PushPart> request,
              absl::Time deadline,
              ReplyCallback<Frame<PushReply>> done) override {
    if (lost_->fetch_sub(1) <= 0) {
      return ForwardingParameterLink::PushTo(
          std::move(place), std::move(request), deadline, std::move(done));
    }
    ForwardingParameterLink::PushTo(
        std::move(place), std::move(request), deadline,
        [this, done = std::move(done)](absl::StatusOr<Frame<PushReply>>) {
          clock_->Jump(absl::Seconds(6));
          done(absl::UnavailableError("connection reset"));
        });
  }

 private:
  JumpingClock* const clock_;
  std::atomic<int>* const lost_;
};

class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    StartShard(0);
    StartShard(1);
    options_.ps_addresses = {"localhost:1", "localhost:2"};
    options_.optimizer.set_name("sgd");
    Attr* const rate = options_.optimizer.add_attr();
    rate->set_name("learning_rate");
    rate->set_f(1);
    options_.max_wait = absl::Seconds(20);
  }

  void StartShard(int index) {
    ShardServer::Options shard;
    shard.shard.incarnation = ++incarnations_;
    shard.shard.ps_index = index;
    shard.clock = &clock_;
    shards_[index] = std::make_unique<ShardServer>(shard);
  }

  absl::StatusOr<std::unique_ptr<Client>> Create(
      const std::vector<Client::Tensor>& tensors) {
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (const auto& shard : shards_) {
      LossyParameterLink::Options loss;
      loss.seed = 20261122;
      loss.lose_request = loss.lose_reply = loss.repeat = lose_;
      links.push_back(std::make_unique<LossyParameterLink>(shard.get(), loss));
    }
    return Client::Create(options_, tensors, std::move(links));
  }
  std::unique_ptr<Client> CreateOf(int worker) {
    options_.worker_index = worker;
    auto model = Create({{"a", {3}}, {"b", {2, 2}}});
    EXPECT_THAT(model, IsOk());
    return *std::move(model);
  }
  absl::Status Pull(Client& model) {
    return model.Pull({absl::MakeSpan(a_), absl::MakeSpan(b_)});
  }

  // Pulls, and pushes ones.
  absl::StatusOr<PushResult> Step(Client& model) {
    const absl::Status pulled = Pull(model);
    if (!pulled.ok()) return pulled;
    return model.Push({ones3_, ones4_});
  }

  double lose_ = 0;
  MonotonicClock clock_;
  uint64_t incarnations_ = 10;
  std::unique_ptr<ShardServer> shards_[2];
  Client::Options options_;
  std::vector<float> a_ = {1, 2, 3};
  std::vector<float> b_ = {4, 5, 6, 7};
  const std::vector<float> ones3_ = {1, 1, 1};
  const std::vector<float> ones4_ = {1, 1, 1, 1};
};

TEST_F(ClientTest, PullsWhatWasInitializedAndPushed) {
  const auto model = CreateOf(0);
  ASSERT_THAT(model->Initialize({a_, b_}), IsOk());
  ASSERT_THAT(Step(*model), IsOk());
  ASSERT_THAT(Pull(*model), IsOk());
  EXPECT_THAT(a_, ElementsAre(0, 1, 2));
  EXPECT_THAT(b_, ElementsAre(3, 4, 5, 6));
  EXPECT_EQ(model->step(), 1);
}

TEST_F(ClientTest, WorkersMeetOnOneModel) {
  const auto first = CreateOf(0);
  const auto second = CreateOf(1);
  ASSERT_THAT(first->Initialize({a_, b_}), IsOk());
  ASSERT_THAT(second->WaitForOthersToInitialize(), IsOk());
  ASSERT_THAT(Step(*second), IsOk());
  ASSERT_THAT(Step(*first), IsOk());
  ASSERT_THAT(Pull(*second), IsOk());
  EXPECT_THAT(a_, ElementsAre(-1, 0, 1));
}

TEST_F(ClientTest, AppliesEachPushOnceOverLossyLinks) {
  lose_ = 0.2;
  const auto model = CreateOf(0);
  a_ = {0, 0, 0};
  b_ = {0, 0, 0, 0};
  ASSERT_THAT(model->Initialize({a_, b_}), IsOk());
  constexpr int kSteps = 30;
  for (int i = 0; i < kSteps; ++i) {
    ASSERT_THAT(Step(*model), IsOk());
  }
  ASSERT_THAT(Pull(*model), IsOk());
  EXPECT_THAT(a_, Each(-kSteps));
  EXPECT_THAT(b_, Each(-kSteps));
}

// Away at the first calls, each of which takes 6 s.
class AwayLink : public ForwardingParameterLink {
 public:
  AwayLink(ParameterLink* link, JumpingClock* clock)
      : ForwardingParameterLink(link), clock_(clock) {}

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    if (away_-- > 0) {
      clock_->Jump(absl::Seconds(6));
      return done(absl::UnavailableError("connection refused"));
    }
    ForwardingParameterLink::CallBytes(method, std::move(request), deadline,
                                       std::move(done));
  }

 private:
  JumpingClock* const clock_;
  int away_ = 3;
};

TEST_F(ClientTest, SaysForWhomItWaits) {
  JumpingClock jumping;
  ReportedLines lines;
  options_.clock = &jumping;
  options_.reporter = lines.reporter();
  options_.max_wait = absl::Hours(1);
  std::vector<std::unique_ptr<ParameterLink>> links;
  for (const auto& shard : shards_) {
    links.push_back(std::make_unique<AwayLink>(shard.get(), &jumping));
  }
  const auto model = Client::Create(options_, {{"a", {3}}}, std::move(links));
  ASSERT_THAT(model, IsOk());
  EXPECT_THAT(lines.lines(),
              ElementsAre(HasSubstr("waiting for /job:ps/task:0 (connection "
                                    "refused); 6 s so far"),
                          HasSubstr("waiting for /job:ps/task:1 (connection "
                                    "refused); 18 s so far"),
                          HasSubstr("waiting for /job:ps/task:1 (connection "
                                    "refused); 30 s so far"),
                          HasSubstr("no longer waiting")));
}

class SilentClientTest : public ClientTest {
 protected:
  SilentClientTest() {
    options_.clock = &jumping_;
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (const auto& shard : shards_) {
      links.push_back(
          std::make_unique<SilentLink>(shard.get(), &jumping_, &lost_));
    }
    auto model =
        Client::Create(options_, {{"a", {3}}, {"b", {2, 2}}}, std::move(links));
    EXPECT_THAT(model, IsOk());
    model_ = *std::move(model);
    EXPECT_THAT(model_->Initialize({a_, b_}), IsOk());
  }

  JumpingClock jumping_;
  std::atomic<int> lost_ = 0;
  std::unique_ptr<Client> model_;
};

TEST_F(SilentClientTest, GoesOnWithAPushThatGetsNoAnswer) {
  lost_ = 3;
  ASSERT_THAT(Step(*model_), IsOk());
  EXPECT_LE(lost_, -1);
  ASSERT_THAT(Pull(*model_), IsOk());
  EXPECT_THAT(a_, ElementsAre(0, 1, 2)) << "once";
  EXPECT_THAT(b_, ElementsAre(3, 4, 5, 6)) << "once";
}

TEST_F(SilentClientTest, GivesAPushUpAfterMaxWait) {
  lost_ = 1000;
  const absl::Time started = jumping_.Now();
  EXPECT_THAT(Step(*model_).status(), StatusIs(absl::StatusCode::kUnavailable,
                                               HasSubstr("connection reset")));
  EXPECT_GE(jumping_.Now() - started, options_.max_wait);
}

TEST_F(ClientTest, ARestartedWorkerTakesOver) {
  const auto dead = CreateOf(0);
  ASSERT_THAT(dead->Initialize({a_, b_}), IsOk());
  ASSERT_THAT(Step(*dead), IsOk());
  const auto restarted = CreateOf(0);
  ASSERT_THAT(restarted->WaitForOthersToInitialize(), IsOk());
  ASSERT_THAT(Step(*restarted), IsOk());
  EXPECT_EQ(dead->Push({ones3_, ones4_}).status().code(),
            absl::StatusCode::kAborted);
  ASSERT_THAT(Pull(*restarted), IsOk());
  EXPECT_THAT(a_, ElementsAre(-1, 0, 1));
}

TEST_F(ClientTest, InitializingAgainFencesWhoMeansTheOldValues) {
  const auto first = CreateOf(0);
  const auto second = CreateOf(1);
  ASSERT_THAT(first->Initialize({a_, b_}), IsOk());
  ASSERT_THAT(second->WaitForOthersToInitialize(), IsOk());
  ASSERT_THAT(Step(*second), IsOk());
  ASSERT_THAT(first->Initialize({a_, b_}), IsOk());
  const auto pushed = second->Push({ones3_, ones4_});
  EXPECT_EQ(pushed.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(pushed.status().message(), HasSubstr("fenced"));
  ASSERT_THAT(second->WaitForOthersToInitialize(), IsOk());
  EXPECT_THAT(Step(*second), IsOk());
}

TEST_F(ClientTest, SaysWhichPsHasNoModel) {
  options_.max_wait = absl::Milliseconds(1);
  const auto model = CreateOf(1);
  const absl::Status waited = model->WaitForOthersToInitialize();
  EXPECT_EQ(waited.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(waited.message(), HasSubstr("/job:ps/task:0 has no model yet"));
}

TEST_F(ClientTest, SaysThatAnotherModelIsThere) {
  ASSERT_THAT(CreateOf(0)->Initialize({a_, b_}), IsOk());
  options_.max_wait = absl::Milliseconds(1);
  options_.worker_index = 1;
  const auto other = Create({{"a", {3}}, {"b", {4}}});
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT((*other)->WaitForOthersToInitialize().message(),
              HasSubstr("/job:ps/task:0 holds another model"));
}

TEST_F(ClientTest, RefusesSpansOfAnotherSize) {
  const auto model = CreateOf(0);
  EXPECT_THAT(model->Initialize({a_}).message(),
              HasSubstr("one span for each of the 2 tensors, found 1"));
  ASSERT_THAT(model->Initialize({a_, b_}), IsOk());
  EXPECT_THAT(model->Push({ones3_, ones3_}).status().message(),
              HasSubstr("'b' has 4 elements, but the span has 3"));
  EXPECT_EQ(model->step(), 0);
}

TEST_F(ClientTest, WantsAPullBeforeTheFirstPush) {
  const auto model = CreateOf(0);
  ASSERT_THAT(model->Initialize({a_, b_}), IsOk());
  EXPECT_THAT(model->Push({ones3_, ones4_}).status().message(),
              HasSubstr("nothing was pulled"));
}

TEST_F(ClientTest, RefusesBadOptions) {
  EXPECT_THAT(Create({}).status().message(), HasSubstr("at least one tensor"));
  EXPECT_THAT(Create({{"a", {-1}}}).status().message(), HasSubstr("'a'"));
  options_.worker_index = -1;
  EXPECT_THAT(Create({{"a", {1}}}).status().message(),
              HasSubstr("worker_index"));
  options_.worker_index = 0;
  options_.ps_addresses.pop_back();
  EXPECT_EQ(Create({{"a", {1}}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ClientTest, RefusesAnOpenNetwork) {
  options_.ps_addresses = {"192.0.2.1:1"};
  EXPECT_EQ(Client::Connect(options_, {{"a", {1}}}).status().code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_F(ClientTest, AnUnknownRuleIsNamed) {
  options_.optimizer.set_name("adamm");
  const auto model = CreateOf(0);
  EXPECT_THAT(model->Initialize({a_, b_}).message(), HasSubstr("adam"));
}

}  // namespace
}  // namespace muster
