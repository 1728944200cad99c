#include "ps_server/service/coordination_server.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CoordinationServerTest : public testing::Test {
 protected:
  explicit CoordinationServerTest(
      absl::Duration worker_timeout = absl::Milliseconds(50)) {
    CoordinationServer::Options options;
    options.coordinator.worker_timeout = worker_timeout;
    options.clock = &clock_;
    options.on_phase_change = [this](const JobState& state) {
      if (state.phase() == DONE) done_.Notify();
    };
    server_ = std::make_unique<CoordinationServer>(options);
  }

  absl::Time Soon() const { return clock_.Now() + absl::Seconds(30); }

  absl::StatusOr<RegisterReply> Register(const Sender& sender) {
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = sender;
    request.set_chief(true);
    return AwaitReply<RegisterReply>(
        [&](auto done) { server_->Register(request, Soon(), done); });
  }

  WatchRequest MakeWatch(int64_t state_version) const {
    WatchRequest request;
    *request.mutable_sender() = MakeSender(3, 1, "ps");
    request.set_state_version(state_version);
    request.set_max_wait_ms(20000);
    return request;
  }

  MonotonicClock clock_;
  absl::Notification done_;
  std::unique_ptr<CoordinationServer> server_;
  const Sender chief_ = MakeSender(0, 100);
};

TEST_F(CoordinationServerTest, AWatchIsAnsweredByAChange) {
  absl::Notification answered;
  server_->Watch(MakeWatch(1), Soon(), [&](absl::StatusOr<JobState> state) {
    EXPECT_THAT(state, IsOk());
    EXPECT_EQ(state->workers_size(), 1);
    answered.Notify();
  });
  ASSERT_THAT(Register(chief_), IsOk());
  answered.WaitForNotification();
}

// While the thread is held up, what comes is carried out in one go.
TEST_F(CoordinationServerTest, WhoNeedNotWaitIsNotToldOfWhatCameAfter) {
  absl::Notification held, go_on, registered;
  server_->GetJobState(Soon(), [&](const absl::StatusOr<JobState>&) {
    held.Notify();
    go_on.WaitForNotification();
  });
  held.WaitForNotification();
  absl::StatusOr<JobState> state = absl::UnknownError("none");
  server_->Watch(MakeWatch(-1), Soon(), [&](absl::StatusOr<JobState> answer) {
    state = std::move(answer);
  });
  RegisterRequest request;
  request.set_protocol_version(kProtocolVersion);
  *request.mutable_sender() = chief_;
  server_->Register(request, Soon(), [&](absl::StatusOr<RegisterReply> reply) {
    EXPECT_THAT(reply, IsOk());
    registered.Notify();
  });
  go_on.Notify();
  registered.WaitForNotification();
  server_->Close();
  ASSERT_THAT(state, IsOk());
  EXPECT_EQ(state->workers_size(), 0);
}

TEST_F(CoordinationServerTest, AWatchIsAnsweredBeforeItsDeadline) {
  const auto state = AwaitReply<JobState>([&](auto done) {
    server_->Watch(MakeWatch(1), clock_.Now() + absl::Milliseconds(300), done);
  });
  EXPECT_THAT(state, IsOk());
}

TEST_F(CoordinationServerTest, SaysForWhomItWaitsAndWhenNoLonger) {
  ReportedLines lines;
  CoordinationServer::Options options;
  options.clock = &clock_;
  options.awaited = [](const JobState& state) {
    return state.workers_size() == 0 ? "the chief" : "";
  };
  options.reporter = lines.reporter();
  server_ = std::make_unique<CoordinationServer>(options);
  lines.Await(1);
  ASSERT_THAT(Register(chief_), IsOk());
  server_->Close();
  EXPECT_THAT(lines.lines(),
              ElementsAre(StartsWith("I waiting for the chief; "),
                          "I no longer waiting"));
}

TEST_F(CoordinationServerTest, TimePassesWithoutRequests) {
  const auto registered = Register(chief_);
  ASSERT_THAT(registered, IsOk());
  // Nobody speaks: the thread itself finds the chief lost.
  const auto state = AwaitReply<JobState>([&](auto done) {
    server_->Watch(MakeWatch(registered->state().state_version()), Soon(),
                   done);
  });
  ASSERT_THAT(state, IsOk());
  EXPECT_TRUE(state->workers(0).lost());
}

TEST_F(CoordinationServerTest, TellsThePhase) {
  ASSERT_THAT(Register(chief_), IsOk());
  FinishRequest request;
  *request.mutable_sender() = chief_;
  request.set_stop_job(true);
  EXPECT_THAT(AwaitReply<FinishReply>(
                  [&](auto done) { server_->Finish(request, Soon(), done); }),
              IsOk());
  done_.WaitForNotification();
}

// A synchronous job of two workers, both with the token of round 1.
class WaitingStepTest : public CoordinationServerTest {
 protected:
  WaitingStepTest() : CoordinationServerTest(absl::Seconds(60)) {
    for (const Sender& sender : {chief_, worker_}) {
      EXPECT_THAT(Register(sender), IsOk());
    }
    BeginEpochRequest begin;
    *begin.mutable_sender() = chief_;
    EXPECT_THAT(AwaitReply<BeginEpochReply>([&](auto done) {
                  server_->BeginEpoch(begin, Soon(), done);
                }),
                IsOk());
    CommitEpochRequest commit;
    *commit.mutable_sender() = chief_;
    commit.set_model_epoch(1);
    commit.mutable_stop()->set_steps(10);
    commit.mutable_replication()->mutable_sync()->set_replicas_to_aggregate(2);
    commit.mutable_replication()->mutable_sync()->set_total_replicas(2);
    EXPECT_THAT(AwaitReply<CommitEpochReply>([&](auto done) {
                  server_->CommitEpoch(commit, Soon(), done);
                }),
                IsOk());
    for (const Sender& sender : {chief_, worker_}) {
      const auto reply = Step(sender, 0, Soon());
      EXPECT_THAT(reply, IsOk());
      EXPECT_TRUE(reply->granted());
    }
  }

  StepRequest MakeStep(const Sender& sender, int64_t step) const {
    StepRequest request;
    *request.mutable_sender() = sender;
    request.set_model_epoch(1);
    request.set_step(step);
    request.set_round(step);
    request.set_max_wait_ms(20000);
    return request;
  }
  absl::StatusOr<StepReply> Step(const Sender& sender, int64_t step,
                                 absl::Time deadline) {
    return AwaitReply<StepReply>([&](auto done) {
      server_->Step(MakeStep(sender, step), deadline, done);
    });
  }

  const Sender worker_ = MakeSender(1, 101);
};

TEST_F(WaitingStepTest, IsAnsweredByAnotherWorkersReport) {
  absl::Notification answered;
  server_->Step(MakeStep(chief_, 1), Soon(),
                [&](const absl::StatusOr<StepReply>& reply) {
                  EXPECT_THAT(reply, IsOk());
                  EXPECT_TRUE(reply->granted());
                  EXPECT_EQ(reply->token().chosen_size(), 2);
                  answered.Notify();
                });
  EXPECT_TRUE(Step(worker_, 1, Soon())->granted());
  answered.WaitForNotification();
}

TEST_F(WaitingStepTest, IsAnsweredBeforeItsDeadline) {
  const auto reply = Step(chief_, 1, clock_.Now() + absl::Milliseconds(300));
  ASSERT_THAT(reply, IsOk());
  EXPECT_FALSE(reply->granted());
  ASSERT_EQ(reply->waiting_for_size(), 1);
  EXPECT_EQ(reply->waiting_for(0).index(), 1);
}

TEST_F(WaitingStepTest, IsAnsweredByAHoldThatEndsByItself) {
  PauseRoundsRequest hold;
  *hold.mutable_sender() = chief_;
  hold.set_model_epoch(1);
  hold.set_pause(true);
  EXPECT_THAT(AwaitReply<PauseRoundsReply>(
                  [&](auto done) { server_->PauseRounds(hold, Soon(), done); }),
              IsOk());
  absl::Notification answered;
  server_->Step(MakeStep(chief_, 1), Soon(),
                [&](const absl::StatusOr<StepReply>& reply) {
                  EXPECT_THAT(reply, IsOk());
                  answered.Notify();
                });
  EXPECT_TRUE(Step(worker_, 1, Soon())->granted());
  answered.WaitForNotification();
}

TEST_F(WaitingStepTest, IsAnsweredByClose) {
  absl::Notification answered;
  server_->Step(MakeStep(chief_, 1), Soon(),
                [&](const absl::StatusOr<StepReply>& reply) {
                  EXPECT_THAT(reply, IsOk());
                  EXPECT_FALSE(reply->granted());
                  answered.Notify();
                });
  server_->Close();
  answered.WaitForNotification();
}

TEST_F(CoordinationServerTest, CloseAnswersWhoWaits) {
  absl::Notification answered;
  server_->Watch(MakeWatch(1), Soon(), [&](absl::StatusOr<JobState> state) {
    EXPECT_THAT(state, IsOk());
    answered.Notify();
  });
  server_->Close();
  answered.WaitForNotification();
  EXPECT_THAT(Register(chief_),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ending")));
}

}  // namespace
}  // namespace muster
