#include "ps_server/service/coordination_server.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/rpc/call_table.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CoordinationServerTest : public testing::Test {
 protected:
  explicit CoordinationServerTest(
      absl::Duration worker_timeout = absl::Milliseconds(50)) {
    CoordinationServer::Options options;
    options.coordinator.worker_timeout = worker_timeout;
    options.clock = &clock_;
    options.on_phase_change = [this](const std::string& /*space*/,
                                     const JobState& state) {
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
    return AwaitReply<RegisterReply>([&](auto done) {
      server_->Call(kRegisterCall, request, Soon(), done);
    });
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
  server_->Call(kWatchCall, MakeWatch(1), Soon(),
                [&](absl::StatusOr<JobState> state) {
                  EXPECT_THAT(state, IsOk());
                  EXPECT_EQ(state->workers_size(), 1);
                  answered.Notify();
                });
  ASSERT_THAT(Register(chief_), IsOk());
  answered.WaitForNotification();
}

// A server of several namespaces.
class CoordinationServerNamespacesTest : public CoordinationServerTest {
 protected:
  CoordinationServerNamespacesTest() {
    CoordinationServer::Options options;
    options.clock = &clock_;
    options.max_namespaces = 2;
    options.coordinator.expected_tasks = 5;
    server_ = std::make_unique<CoordinationServer>(options);
  }

  static Sender In(const std::string& space, uint64_t incarnation) {
    Sender sender = MakeSender(0, incarnation);
    sender.set_namespace_(space);
    return sender;
  }

  absl::StatusOr<EndNamespaceReply> Drop(const std::string& space, bool force) {
    EndNamespaceRequest request;
    request.set_namespace_(space);
    request.set_drop(true);
    request.set_force(force);
    return AwaitCall(*server_, kEndJobCall, request, Soon());
  }

  absl::StatusOr<JobState> StateOf(const std::string& space) {
    JobStateRequest request;
    request.set_namespace_(space);
    return AwaitCall(*server_, kGetJobStateCall, request, Soon());
  }
};

TEST_F(CoordinationServerNamespacesTest, EachHasItsJob) {
  for (const char* space : {"", "a", "b"}) {
    ASSERT_THAT(Register(In(space, 5)), IsOk());
  }
  EXPECT_THAT(Register(In("c", 5)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("(--max_namespaces): a, b")));
  FinishRequest finish;
  *finish.mutable_sender() = In("a", 5);
  finish.set_stop_job(true);
  ASSERT_THAT(AwaitCall(*server_, kFinishCall, finish, Soon()), IsOk());
  EXPECT_THAT(StateOf("a"), StatusIs(absl::StatusCode::kFailedPrecondition))
      << "none but its own is expected, and there was never a model";
  EXPECT_EQ(StateOf("b")->phase(), INITIAL);
  EXPECT_EQ(StateOf("")->phase(), INITIAL);
  EXPECT_GE(StateOf("b")->idle_s(), 0);
}

TEST_F(CoordinationServerNamespacesTest, WhoAsksAloneOrIsRefused_MakesNoJob) {
  RegisterRequest ask;
  ask.set_protocol_version(kProtocolVersion);
  *ask.mutable_sender() = In("a", 5);
  ask.set_asks_only(true);
  ASSERT_THAT(AwaitCall(*server_, kRegisterCall, ask, Soon()), IsOk());
  ask.set_asks_only(false);
  ask.set_protocol_version(0);
  EXPECT_FALSE(AwaitCall(*server_, kRegisterCall, ask, Soon()).ok());
  EXPECT_THAT(StateOf("a"), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(CoordinationServerNamespacesTest, AWorkerBeforeTheChief_AsksAgain) {
  AssignTaskRequest ask;
  ask.set_protocol_version(kProtocolVersion);
  ask.set_namespace_("a");
  ask.set_incarnation(101);
  EXPECT_THAT(AwaitCall(*server_, kAssignTaskCall, ask, Soon()),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("started with --task_index=0")));
  EXPECT_THAT(StateOf("a"), StatusIs(absl::StatusCode::kFailedPrecondition))
      << "it has brought no job";
}

TEST_F(CoordinationServerNamespacesTest, OneThatIsNotThereWantsARegister) {
  WatchRequest watch = MakeWatch(0);
  *watch.mutable_sender() = In("a", 5);
  const auto state = AwaitCall(*server_, kWatchCall, watch, Soon());
  EXPECT_EQ(ReasonOf(state.status()), ErrorReason::kNotRegistered);
  EXPECT_THAT(StateOf("a"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("namespace 'a'")));
}

TEST_F(CoordinationServerNamespacesTest,
       IsDroppedWhileWorkersTrainOnlyByForce) {
  const Sender worker = In("a", 5);
  ASSERT_THAT(Register(worker), IsOk());
  EXPECT_THAT(
      Drop("a", /*force=*/false),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("1 tasks train there"),
                     HasSubstr("/job:worker/task:0"), HasSubstr("--force"))));
  absl::Notification told;
  WatchRequest watch = MakeWatch(StateOf("a")->state_version());
  *watch.mutable_sender() = worker;
  server_->Call(kWatchCall, watch, Soon(), [&](absl::StatusOr<JobState> state) {
    EXPECT_EQ(ReasonOf(state.status()), ErrorReason::kReplaced);
    told.Notify();
  });
  ASSERT_THAT(Drop("a", /*force=*/true), IsOk());
  told.WaitForNotification();
  const auto again = Register(worker);
  EXPECT_EQ(ReasonOf(again.status()), ErrorReason::kReplaced);
  EXPECT_THAT(again.status().message(), HasSubstr("'a' was dropped"));
  EXPECT_THAT(Drop("a", /*force=*/false),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Register(In("a", 6)), IsOk()) << "a new job";
}

TEST_F(CoordinationServerTest, RefusesAnotherNamespace) {
  JobStateRequest own;
  own.set_namespace_("b");
  EXPECT_THAT(AwaitCall(*server_, kGetJobStateCall, own, Soon()),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("GetJobState: namespace 'b'; only ")));
  WatchRequest senders = MakeWatch(0);
  senders.mutable_sender()->set_namespace_("b");
  EXPECT_THAT(AwaitCall(*server_, kWatchCall, senders, Soon()),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("Watch: namespace 'b'; only ")));
}

// While the thread is held up, what comes is carried out in one go.
TEST_F(CoordinationServerTest, WhoNeedNotWaitIsNotToldOfWhatCameAfter) {
  absl::Notification held, go_on, registered;
  server_->Call(kGetJobStateCall, {}, Soon(),
                [&](const absl::StatusOr<JobState>&) {
                  held.Notify();
                  go_on.WaitForNotification();
                });
  held.WaitForNotification();
  absl::StatusOr<JobState> state = absl::UnknownError("none");
  server_->Call(
      kWatchCall, MakeWatch(-1), Soon(),
      [&](absl::StatusOr<JobState> answer) { state = std::move(answer); });
  RegisterRequest request;
  request.set_protocol_version(kProtocolVersion);
  *request.mutable_sender() = chief_;
  server_->Call(kRegisterCall, request, Soon(),
                [&](absl::StatusOr<RegisterReply> reply) {
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
    server_->Call(kWatchCall, MakeWatch(1),
                  clock_.Now() + absl::Milliseconds(300), done);
  });
  EXPECT_THAT(state, IsOk());
}

TEST_F(CoordinationServerTest, SaysForWhomItWaitsAndWhenNoLonger) {
  ReportedLines lines;
  CoordinationServer::Options options;
  options.clock = &clock_;
  options.awaited = [](const std::string& /*space*/, const JobState& state) {
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

TEST_F(CoordinationServerTest, WarnsOfAWorkerWithOtherFiles) {
  ReportedLines lines;
  CoordinationServer::Options options;
  options.clock = &clock_;
  options.reporter = lines.reporter();
  server_ = std::make_unique<CoordinationServer>(options);
  RegisterRequest request;
  request.set_protocol_version(kProtocolVersion);
  request.add_data()->set_name("files");
  for (const int task : {0, 1}) {
    *request.mutable_sender() = MakeSender(task, 100);
    request.mutable_data(0)->set_digest(task);
    ASSERT_THAT(AwaitCall(*server_, kRegisterCall, request, Soon()), IsOk());
  }
  lines.Await(1);
  server_->Close();
  EXPECT_THAT(lines.lines(),
              ElementsAre(StartsWith("W /job:worker/task:1 reads other")));
}

TEST_F(CoordinationServerTest, TimePassesWithoutRequests) {
  const auto registered = Register(chief_);
  ASSERT_THAT(registered, IsOk());
  // The chief says nothing: the thread itself finds it lost.
  JobState state = registered->state();
  while (!state.workers(0).lost()) {
    const auto reply = AwaitReply<JobState>([&](auto done) {
      server_->Call(kWatchCall, MakeWatch(state.state_version()), Soon(), done);
    });
    ASSERT_THAT(reply, IsOk());
    state = *reply;
  }
}

TEST_F(CoordinationServerTest, TellsThePhase) {
  ASSERT_THAT(Register(chief_), IsOk());
  FinishRequest request;
  *request.mutable_sender() = chief_;
  request.set_stop_job(true);
  EXPECT_THAT(AwaitReply<FinishReply>([&](auto done) {
                server_->Call(kFinishCall, request, Soon(), done);
              }),
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
                  server_->Call(kBeginEpochCall, begin, Soon(), done);
                }),
                IsOk());
    CommitEpochRequest commit;
    *commit.mutable_sender() = chief_;
    commit.set_model_epoch(1);
    commit.mutable_stop()->set_steps(10);
    commit.mutable_replication()->mutable_sync()->set_replicas_to_aggregate(2);
    commit.mutable_replication()->mutable_sync()->set_total_replicas(2);
    EXPECT_THAT(AwaitReply<CommitEpochReply>([&](auto done) {
                  server_->Call(kCommitEpochCall, commit, Soon(), done);
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
      server_->Call(kStepCall, MakeStep(sender, step), deadline, done);
    });
  }

  const Sender worker_ = MakeSender(1, 101);
};

TEST_F(WaitingStepTest, IsAnsweredByAnotherWorkersReport) {
  absl::Notification answered;
  server_->Call(kStepCall, MakeStep(chief_, 1), Soon(),
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
  EXPECT_THAT(AwaitReply<PauseRoundsReply>([&](auto done) {
                server_->Call(kPauseRoundsCall, hold, Soon(), done);
              }),
              IsOk());
  absl::Notification answered;
  server_->Call(kStepCall, MakeStep(chief_, 1), Soon(),
                [&](const absl::StatusOr<StepReply>& reply) {
                  EXPECT_THAT(reply, IsOk());
                  answered.Notify();
                });
  EXPECT_TRUE(Step(worker_, 1, Soon())->granted());
  answered.WaitForNotification();
}

TEST_F(WaitingStepTest, IsAnsweredByClose) {
  absl::Notification answered;
  server_->Call(kStepCall, MakeStep(chief_, 1), Soon(),
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
  server_->Call(kWatchCall, MakeWatch(1), Soon(),
                [&](absl::StatusOr<JobState> state) {
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
