#include "ps_server/service/call_service.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/rpc/call_table.h"
#include "common/rpc/error_reason.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "ps_server/caller/caller.h"
#include "ps_server/service/coordination_server.h"
#include "ps_server/service/shard_server.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/fixed_entrance.h"
#include "tests/testing/loopback_server.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/link/grpc_coordination_link.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// Bytes that are no message: a field that is longer than they are.
constexpr char kNoMessage[] = "\x0a\x7f";

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
    calls_.Handle(kStepCall,
                  [this](const StepRequest&, absl::Time, const auto& done) {
                    if (++steps_ > refused_steps_) return done(StepReply());
                    done(absl::InvalidArgumentError("no such worker"));
                  });
    calls_.Handle(kAssignTaskCall, [](const AssignTaskRequest&, absl::Time,
                                      const auto& done) {
      done(absl::FailedPreconditionError("the cluster lists its workers"));
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
  // Those that came as requests; the first of these are refused.
  int steps_ = 0;
  int refused_steps_ = 0;
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

// ---- Damage on the way --------------------------------------------------

// Puts bytes that are no message in the place of some requests and answers.
class DamagingLink : public Link {
 public:
  explicit DamagingLink(Link* link) : link_(link) {}

  int requests = 0;
  int answers = 0;

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    if (requests-- > 0) request = kNoMessage;
    link_->CallBytes(method, std::move(request), deadline,
                     [damage = answers-- > 0, done = std::move(done)](
                         absl::StatusOr<std::string> answer) {
                       done(damage ? kNoMessage : std::move(answer));
                     });
  }

 private:
  Link* const link_;
};

class DamageTest : public CallServiceTest {
 protected:
  absl::Status Step() {
    return AwaitCall(way_, kStepCall, {}, Soon()).status();
  }

  DamagingLink way_{link_.get()};
};

TEST_F(DamageTest, ADamagedRequestIsSentAgain) {
  way_.requests = kDamageTries - 1;
  EXPECT_THAT(Step(), IsOk());
  EXPECT_EQ(steps_, 1);
}

TEST_F(DamageTest, ADamagedAnswerIsAskedForAgain) {
  way_.answers = kDamageTries - 1;
  EXPECT_THAT(Step(), IsOk());
  EXPECT_EQ(steps_, kDamageTries);
}

TEST_F(DamageTest, ARefusalOfWhatMayHaveChangedOnTheWayIsAskedForAgain) {
  refused_steps_ = kDamageTries - 1;
  EXPECT_THAT(Step(), IsOk());
  refused_steps_ = 2 * kDamageTries;
  const absl::Status refused = Step();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(IsDamaged(refused));
  EXPECT_EQ(steps_, 2 * kDamageTries);
}

TEST_F(DamageTest, DamageWithoutEndIsToldForWhatItIs) {
  way_.requests = kDamageTries;
  EXPECT_TRUE(IsDamaged(Step()));
  way_.answers = kDamageTries;
  EXPECT_TRUE(IsDamaged(Step()));
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

TEST_F(CallServiceTest, AWorkerThatAsksForAnIndex_HasThatOfItsCertificate) {
  EXPECT_FALSE(AskBytes(kAssignTaskCall, "").ok());
  caller_.role = Role::kWorker;
  caller_.task = TaskKey("worker", 7);
  const auto bytes = AskBytes(kAssignTaskCall, "");
  ASSERT_THAT(bytes, IsOk());
  AssignTaskReply reply;
  ASSERT_TRUE(reply.ParseFromString(*bytes));
  EXPECT_EQ(reply.index(), 7);
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
        AnyMethod(kPullRowsCall), AnyMethod(kReadSnapshotCall)}) {
    EXPECT_TRUE(served.insert(row.path).second) << row.path;
  }
  EXPECT_EQ(served, PathsOf(*PullRequest::descriptor()->file()));
}

}  // namespace
}  // namespace muster
