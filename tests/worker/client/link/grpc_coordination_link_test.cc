#include "worker/client/link/grpc_coordination_link.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/rpc/call_table.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "ps_server/service/call_service.h"
#include "ps_server/service/coordination_server.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/loopback_server.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Sender Chief(uint64_t incarnation) {
  Sender sender;
  sender.mutable_task()->set_job("worker");
  sender.set_incarnation(incarnation);
  return sender;
}

// The coordination service of a ps, on a free loopback port, and a link to it.
class GrpcCoordinationLinkTest : public testing::Test {
 protected:
  GrpcCoordinationLinkTest() {
    CoordinationServer::Options options;
    options.clock = &clock_;
    coordination_ = std::make_unique<CoordinationServer>(options);
    service_ = std::make_unique<CallService>(&coordination_->calls(), &clock_);
    server_ =
        std::make_unique<LoopbackServer>([this](grpc::ServerBuilder* builder) {
          builder->RegisterService(service_.get());
        });
    link_ = std::make_unique<GrpcCoordinationLink>(
        PeerName{"/job:ps/task:0", server_->address()},
        grpc::InsecureChannelCredentials());
  }

  ~GrpcCoordinationLinkTest() override {
    link_.reset();
    StopServer();
  }

  void StopServer() {
    coordination_->Close();
    server_->Stop();
  }

  absl::Time Soon() const { return clock_.Now() + absl::Seconds(30); }

  // An answer that comes at its deadline is still waited for.
  static void AwaitSoon(const absl::Notification& answered) {
    ASSERT_TRUE(answered.WaitForNotificationWithTimeout(absl::Seconds(60)));
  }

  template <typename M>
  absl::StatusOr<typename M::Reply> Ask(const M& method,
                                        const typename M::Request& request) {
    return AwaitCall(*link_, method, request, Soon());
  }

  absl::StatusOr<RegisterReply> Register(uint64_t incarnation) {
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = Chief(incarnation);
    request.set_chief(true);
    const auto reply = Ask(kRegisterCall, request);
    if (!reply.ok() || reply->takeover() == 0) return reply;
    request.set_takeover(reply->takeover());
    return Ask(kRegisterCall, request);
  }

  WatchRequest MakeWatch(int64_t state_version) const {
    WatchRequest request;
    *request.mutable_sender() = Chief(7);
    request.set_state_version(state_version);
    request.set_max_wait_ms(20000);
    return request;
  }

  const MonotonicClock clock_{};
  std::unique_ptr<CoordinationServer> coordination_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<LoopbackServer> server_;
  std::unique_ptr<GrpcCoordinationLink> link_;
};

// gRPC's code for it is that of a lack of room, after which one tries again.
TEST_F(GrpcCoordinationLinkTest, AMessageOverTheLimitIsRefusedForGood) {
  RegisterRequest request;
  request.set_protocol_version(kProtocolVersion);
  *request.mutable_sender() = Chief(7);
  request.set_training_text(
      std::string(kMaxPartBytes + kMaxHeaderBytes + 1, 't'));
  EXPECT_THAT(Ask(kRegisterCall, request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the training does not fit into a message "
                                 "(Sent message larger than max")));
}

TEST_F(GrpcCoordinationLinkTest, CarriesAWholeRun) {
  ASSERT_THAT(Register(7), IsOk());

  BeginEpochRequest begin;
  *begin.mutable_sender() = Chief(7);
  begin.set_seen_epoch(4);
  const auto begun = Ask(kBeginEpochCall, begin);
  ASSERT_THAT(begun, IsOk());
  EXPECT_EQ(begun->model_epoch(), 5);

  CommitEpochRequest commit;
  *commit.mutable_sender() = Chief(7);
  commit.set_model_epoch(5);
  commit.mutable_stop()->set_steps(1);
  const auto committed = Ask(kCommitEpochCall, commit);
  ASSERT_THAT(committed, IsOk());
  EXPECT_EQ(committed->state().phase(), RUNNING);

  StepRequest step;
  *step.mutable_sender() = Chief(7);
  step.set_model_epoch(5);
  const auto granted = Ask(kStepCall, step);
  ASSERT_THAT(granted, IsOk());
  EXPECT_TRUE(granted->granted());
  step.set_step(1);
  const auto reported = Ask(kStepCall, step);
  ASSERT_THAT(reported, IsOk());
  EXPECT_EQ(reported->global_step(), 1);
  EXPECT_EQ(reported->phase(), STOPPING);

  FinishRequest finish;
  *finish.mutable_sender() = Chief(7);
  finish.set_reason("done");
  const auto finished = Ask(kFinishCall, finish);
  ASSERT_THAT(finished, IsOk());
  EXPECT_EQ(finished->state().phase(), DONE);

  const auto watched = Ask(kWatchCall, MakeWatch(0));
  ASSERT_THAT(watched, IsOk());
  EXPECT_EQ(watched->phase(), DONE);
}

TEST_F(GrpcCoordinationLinkTest, AWaitingWatchHoldsUpNothing) {
  const auto registered = Register(7);
  ASSERT_THAT(registered, IsOk());
  const int64_t version = registered->state().state_version();
  absl::Notification answered;
  link_->Call(kWatchCall, MakeWatch(version), Soon(),
              [&](const absl::StatusOr<JobState>& state) {
                ASSERT_THAT(state, IsOk());
                // The change has answered it, not the time.
                EXPECT_GT(state->state_version(), version);
                answered.Notify();
              });
  ASSERT_THAT(Register(7), IsOk());  // a change: answers the Watch
  AwaitSoon(answered);
}

TEST_F(GrpcCoordinationLinkTest, CarriesAHoldAndAStepThatWaits) {
  ASSERT_THAT(Register(7), IsOk());
  BeginEpochRequest begin;
  *begin.mutable_sender() = Chief(7);
  ASSERT_THAT(Ask(kBeginEpochCall, begin), IsOk());
  CommitEpochRequest commit;
  *commit.mutable_sender() = Chief(7);
  commit.set_model_epoch(1);
  commit.mutable_stop()->set_steps(9);
  commit.mutable_replication()->mutable_sync()->set_replicas_to_aggregate(1);
  commit.mutable_replication()->mutable_sync()->set_total_replicas(1);
  ASSERT_THAT(Ask(kCommitEpochCall, commit), IsOk());
  StepRequest step;
  *step.mutable_sender() = Chief(7);
  step.set_model_epoch(1);
  step.set_max_wait_ms(20000);
  const auto granted = Ask(kStepCall, step);
  ASSERT_THAT(granted, IsOk());
  EXPECT_EQ(granted->token().round(), 1);

  PauseRoundsRequest hold;
  *hold.mutable_sender() = Chief(7);
  hold.set_model_epoch(1);
  hold.set_pause(true);
  const auto held = Ask(kPauseRoundsCall, hold);
  ASSERT_THAT(held, IsOk());
  EXPECT_EQ(held->token().round(), 1);
  std::atomic<bool> is_held = true;
  absl::Notification answered;
  step.set_step(1);
  step.set_round(1);
  link_->Call(kStepCall, step, Soon(),
              [&](const absl::StatusOr<StepReply>& reply) {
                EXPECT_FALSE(is_held);
                ASSERT_THAT(reply, IsOk());
                EXPECT_EQ(reply->token().chosen_size(), 1);
                answered.Notify();
              });
  // Whatever else is asked meanwhile, over the same connection.
  ASSERT_THAT(Ask(kWatchCall, MakeWatch(0)), IsOk());
  is_held = false;
  hold.set_pause(false);
  ASSERT_THAT(Ask(kPauseRoundsCall, hold), IsOk());
  AwaitSoon(answered);
}

TEST_F(GrpcCoordinationLinkTest, KeepsTheReasonAndTheMessage) {
  ASSERT_THAT(Register(7), IsOk());
  ASSERT_THAT(Register(8), IsOk());
  const absl::Status replaced = Register(7).status();
  EXPECT_THAT(replaced, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 StartsWith("fenced: ")));
  EXPECT_EQ(ReasonOf(replaced), ErrorReason::kReplaced);
}

TEST_F(GrpcCoordinationLinkTest, DestructionEndsAWaitingWatch) {
  const auto registered = Register(7);
  ASSERT_THAT(registered, IsOk());
  int answers = 0;
  link_->Call(kWatchCall, MakeWatch(registered->state().state_version()),
              Soon(), [&](const absl::StatusOr<JobState>& state) {
                EXPECT_THAT(state, StatusIs(absl::StatusCode::kCancelled));
                ++answers;
              });
  link_.reset();
  EXPECT_EQ(answers, 1);
}

TEST_F(GrpcCoordinationLinkTest, NamesAPeerThatIsGone) {
  ASSERT_THAT(Register(7), IsOk());
  StopServer();
  EXPECT_THAT(Register(7), StatusIs(absl::StatusCode::kUnavailable,
                                    HasSubstr("/job:ps/task:0 at " +
                                              server_->address() + ": ")));
}

}  // namespace
}  // namespace muster
