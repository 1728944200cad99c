#include "ps_server/service/call_service.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/rpc/call_table.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "ps_server/caller/caller.h"
#include "ps_server/service/coordination_server.h"
#include "ps_server/service/entrance.h"
#include "ps_server/service/shard_server.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/loopback_server.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/link/grpc_coordination_link.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// Bytes that are no message: a field that is longer than they are.
constexpr char kNoMessage[] = "\x0a\x7f";

// Takes every peer for one caller.
class FixedEntrance : public Entrance {
 public:
  explicit FixedEntrance(const Caller* caller)
      : Entrance(Options()), caller_(caller) {}

  Caller Identify(const grpc::CallbackServerContext&) const override {
    return *caller_;
  }

 private:
  const Caller* const caller_;
};

// Calls with a few handlers, and a link to them over gRPC.
class CallServiceTest : public testing::Test {
 protected:
  CallServiceTest() {
    calls_.Handle(kPauseRoundsCall, [](const PauseRoundsRequest& request,
                                       absl::Time, const auto& done) {
      PauseRoundsReply reply;
      reply.mutable_token()->set_round(request.model_epoch());
      done(reply);
    });
    service_ = std::make_unique<CallService>(&calls_, &clock_, &entrance_);
    server_ =
        std::make_unique<LoopbackServer>([this](grpc::ServerBuilder* builder) {
          builder->RegisterService(service_.get());
        });
    link_ = std::make_unique<GrpcCoordinationLink>(
        PeerName{"/job:ps/task:0", server_->address()},
        grpc::InsecureChannelCredentials());
  }
  ~CallServiceTest() override {
    link_.reset();
    server_->Stop();
  }

  // A request of that worker.
  static std::string BytesOfSender(int index) {
    PauseRoundsRequest request;
    request.mutable_sender()->mutable_task()->set_job("worker");
    request.mutable_sender()->mutable_task()->set_index(index);
    return request.SerializeAsString();
  }
  absl::Time Soon() const { return clock_.Now() + absl::Seconds(30); }
  absl::StatusOr<std::string> AskBytes(const AnyMethod& method,
                                       const std::string& request) {
    return AwaitReply<std::string>([&](ReplyCallback<std::string> done) {
      link_->CallBytes(method, request, Soon(), std::move(done));
    });
  }

  const MonotonicClock clock_{};
  // Whom the service takes its peer for; changed between calls.
  Caller caller_;
  const FixedEntrance entrance_{&caller_};
  ServedCalls calls_;
  std::unique_ptr<CallService> service_;
  std::unique_ptr<LoopbackServer> server_;
  std::unique_ptr<GrpcCoordinationLink> link_;
};

TEST_F(CallServiceTest, CarriesARequestAndItsReply) {
  PauseRoundsRequest request;
  request.set_model_epoch(7);
  const auto reply = AwaitCall(*link_, kPauseRoundsCall, request, Soon());
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->token().round(), 7);
}

TEST_F(CallServiceTest, RefusesARequestThatIsNone) {
  EXPECT_THAT(AskBytes(kPauseRoundsCall, kNoMessage),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("CoordinationService/PauseRounds")));
}

TEST_F(CallServiceTest, RefusesWhatHasNoHandler) {
  EXPECT_THAT(AskBytes(kFinishCall, ""),
              StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_F(CallServiceTest, RefusesACallerWhoseRoleIsNotInTheRow) {
  caller_.role = Role::kWorker;
  EXPECT_THAT(AskBytes(kPauseRoundsCall, ""),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("CoordinationService/PauseRounds over gRPC")));
  caller_.role = Role::kChief;
  caller_.task = TaskKey("worker", 0);
  EXPECT_THAT(AskBytes(kPauseRoundsCall, BytesOfSender(0)), IsOk());
}

TEST_F(CallServiceTest, RefusesARequestInTheNameOfAnother) {
  caller_.role = Role::kChief;
  caller_.task = TaskKey("worker", 0);
  for (const std::string& request : {BytesOfSender(1), std::string()}) {
    EXPECT_THAT(AskBytes(kPauseRoundsCall, request),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         HasSubstr("wanted the task of its certificate")));
  }
}

// Protobuf merges what comes twice: the sum counts, not the first.
TEST_F(CallServiceTest, RefusesASenderInTwoPieces) {
  caller_.role = Role::kChief;
  caller_.task = TaskKey("worker", 0);
  EXPECT_THAT(
      AskBytes(kPauseRoundsCall, BytesOfSender(0) + BytesOfSender(1)),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("task:1")));
}

TEST_F(CallServiceTest, RefusesWhoseCertificateHasEndedForAWhile) {
  caller_.role = Role::kChief;
  caller_.task = TaskKey("worker", 0);
  caller_.valid_until = absl::InfinitePast();
  EXPECT_THAT(AskBytes(kPauseRoundsCall, BytesOfSender(0)),
              StatusIs(absl::StatusCode::kUnavailable));
}

// A link whose peer answers every call with the same bytes.
class SameAnswer : public Link {
 public:
  explicit SameAnswer(std::string bytes) : bytes_(std::move(bytes)) {}

  void CallBytes(const AnyMethod&, std::string, absl::Time,
                 ReplyCallback<std::string> done) override {
    done(bytes_);
  }

 private:
  const std::string bytes_;
};

TEST(LinkTest, AReplyThatIsNoneIsAnErrorThatNamesTheCall) {
  SameAnswer link(kNoMessage);
  EXPECT_THAT(AwaitCall(link, kFinishCall, {}, absl::InfiniteFuture()),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("CoordinationService/Finish")));
}

// Every rpc of a proto.
std::set<std::string> PathsOf(const google::protobuf::FileDescriptor& file) {
  std::set<std::string> paths;
  for (int i = 0; i < file.service_count(); ++i) {
    const auto& service = *file.service(i);
    for (int j = 0; j < service.method_count(); ++j) {
      paths.insert(absl::StrCat("/", service.full_name(), "/",
                                service.method(j)->name()));
    }
  }
  return paths;
}

std::set<std::string> PathsOf(const ServedCalls& calls) {
  std::set<std::string> paths;
  for (const AnyMethod& method : calls.methods()) paths.insert(method.path);
  return paths;
}

TEST(CallTableTest, APsAnswersEveryRpcOfTheProtos) {
  const MonotonicClock clock{};
  CoordinationServer::Options coordination;
  coordination.clock = &clock;
  CoordinationServer coordinator(coordination);
  EXPECT_EQ(PathsOf(coordinator.calls()),
            PathsOf(*StepRequest::descriptor()->file()));
  ShardServer::Options options;
  options.clock = &clock;
  ShardServer shard(options);
  std::set<std::string> served = PathsOf(shard.calls());
  for (const AnyMethod& row :
       {AnyMethod(kLoadCall), AnyMethod(kPullCall), AnyMethod(kPushCall),
        AnyMethod(kReadSnapshotCall), AnyMethod(kExchangeCall)}) {
    EXPECT_TRUE(served.insert(row.path).second) << row.path;
  }
  EXPECT_EQ(served, PathsOf(*PullRequest::descriptor()->file()));
}

}  // namespace
}  // namespace muster
