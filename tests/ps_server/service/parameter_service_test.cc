#include "ps_server/service/parameter_service.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/rpc/channel_settings.h"
#include "common/rpc/deadline.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/frame/byte_buffer.h"
#include "common/rpc/protocol.h"
#include "common/rpc/status_conversion.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "proto/parameter_service.grpc.pb.h"
#include "ps_server/caller/caller.h"
#include "ps_server/caller/task_name.h"
#include "tests/testing/delayed_calls.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/fixed_entrance.h"
#include "tests/testing/loopback_server.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// No test takes so long.
constexpr absl::Duration kPatience = absl::Seconds(60);

void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(ToGrpcDeadline(SystemClock()->Now() + kPatience));
}

PullRequest PullOf(int64_t bytes) {
  PullRequest request;
  request.add_slices()->set_length(bytes);
  return request;
}

// A push by a stub of any language: nothing of Muster's own client.
class StubPush {
 public:
  StubPush(ParameterService::Stub* stub, int64_t step) {
    SetDeadline(&context_);
    request_.set_step(step);
    request_.set_data("12345678");
    stub->async()->Push(&context_, &request_, &reply_, [this](grpc::Status s) {
      status_ = std::move(s);
      done_.Notify();
    });
  }

  void Cancel() { context_.TryCancel(); }
  bool is_answered() const { return done_.HasBeenNotified(); }
  // The staleness that the answer tells.
  absl::StatusOr<int64_t> Await() {
    done_.WaitForNotification();
    if (!status_.ok()) return ToAbslStatus(status_);
    return reply_.staleness();
  }

 private:
  grpc::ClientContext context_;
  PushPart request_;
  PushReply reply_;
  grpc::Status status_;
  absl::Notification done_;
};

class ParameterServiceTest : public testing::Test {
 protected:
  ParameterServiceTest()
      : service_(MakeParameterService(&shard_, /*calls=*/nullptr, SystemClock(),
                                      &entrance_)),
        server_([this](grpc::ServerBuilder* builder) {
          builder->RegisterService(service_.get());
        }),
        channel_(grpc::CreateChannel(server_.address(),
                                     grpc::InsecureChannelCredentials())),
        stub_(ParameterService::NewStub(channel_)) {}

  static Entrance::Options OptionsOf(const Clock* clock, Reporter reporter) {
    Entrance::Options options;
    options.clock = clock;
    options.reporter = std::move(reporter);
    return options;
  }

  absl::StatusOr<std::string> Pull(const PullRequest& request) {
    grpc::ClientContext context;
    SetDeadline(&context);
    PullReply reply;
    const grpc::Status status = stub_->Pull(&context, request, &reply);
    if (!status.ok()) return ToAbslStatus(status);
    return reply.data();
  }

  // The answer to a push of these bytes.
  absl::Status PushBytes(const std::string& bytes) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    SetDeadline(&context);
    const grpc::ByteBuffer request = ToByteBuffer(bytes);
    grpc::ByteBuffer reply;
    grpc::Status outcome;
    absl::Notification done;
    stub.UnaryCall(&context, "/muster.ParameterService/Push",
                   grpc::StubOptions(), &request, &reply,
                   [&](grpc::Status status) {
                     outcome = std::move(status);
                     done.Notify();
                   });
    done.WaitForNotification();
    return ToAbslStatus(outcome);
  }

  FakeClock clock_;
  ReportedLines said_;
  Caller caller_;
  const FixedEntrance entrance_{&caller_, OptionsOf(&clock_, said_.reporter())};
  DelayedCalls shard_;
  std::unique_ptr<grpc::Service> service_;
  LoopbackServer server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<ParameterService::Stub> stub_;
};

TEST_F(ParameterServiceTest, AStubOfAnyLanguageMayPush) {
  const absl::Time before = SystemClock()->Now();
  StubPush push(stub_.get(), /*step=*/5);
  shard_.AwaitHeld(1);
  // Its deadline is the shard's; gRPC rounds the time that is left up.
  EXPECT_GT(shard_.deadline_of(5), before);
  EXPECT_LE(shard_.deadline_of(5), SystemClock()->Now() + 2 * kPatience);
  shard_.Answer(5);
  EXPECT_THAT(push.Await(), IsOkAndHolds(5));
}

TEST_F(ParameterServiceTest, AnswersInTheOrderOfTheShard) {
  std::vector<std::unique_ptr<StubPush>> pushes(1);
  for (int step = 1; step <= 3; ++step) {
    pushes.push_back(std::make_unique<StubPush>(stub_.get(), step));
  }
  shard_.AwaitHeld(3);
  for (const int step : {2, 3, 1}) {
    shard_.Answer(step);
    EXPECT_THAT(pushes[step]->Await(), IsOkAndHolds(step));
  }
}

// What a peer sends without reading takes so much memory and no more.
TEST_F(ParameterServiceTest, AConnectionHas64CallsUnderWay) {
  constexpr int kUnderWay = 64;
  constexpr int kCalls = 3 * kUnderWay;
  std::vector<std::unique_ptr<StubPush>> pushes;
  for (int step = 0; step < kCalls; ++step) {
    pushes.push_back(std::make_unique<StubPush>(stub_.get(), step));
  }
  shard_.AwaitHeld(kUnderWay);
  // Over a connection of its own: meanwhile more could have come.
  stub_ = ParameterService::NewStub(
      OpenChannel(server_.address(), grpc::InsecureChannelCredentials()));
  for (int call = 0; call < kCalls; ++call) {
    EXPECT_THAT(Pull(PullOf(4)), IsOk());
  }
  for (int step = 0; step < kCalls; ++step) {
    while (!pushes[step]->is_answered()) {
      shard_.AnswerAll();
      std::this_thread::yield();
    }
    EXPECT_THAT(pushes[step]->Await(), IsOkAndHolds(step));
  }
  EXPECT_EQ(shard_.most_held(), kUnderWay);
}

TEST_F(ParameterServiceTest, BytesThatAreNoRequestAreDamage) {
  for (const std::string& bytes : {std::string("\xff\xff\xff"),
                                   std::string("\x7a\x7f"
                                               "too short"),
                                   std::string("\x7a\x00\x18\x01", 4)}) {
    const absl::Status status = PushBytes(bytes);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("malformed muster.PushPart")));
    EXPECT_TRUE(IsDamaged(status));
  }
}

TEST_F(ParameterServiceTest, AnAnswerThatDoesNotFitIsAnError) {
  EXPECT_THAT(Pull(PullOf(kMaxPartBytes + kMaxHeaderBytes)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("Sent message larger than max")));
  EXPECT_THAT(Pull(PullOf(4)), IsOkAndHolds("vvvv"));
}

TEST_F(ParameterServiceTest, ChecksTheRoleAndTheSenderOfARequest) {
  caller_ = {Role::kWorker, TaskKey("worker", 1)};
  grpc::ClientContext context;
  SetDeadline(&context);
  LoadReply loaded;
  const grpc::Status refused = stub_->Load(&context, LoadPart(), &loaded);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("ParameterService/Load"));
  PullRequest pull = PullOf(4);
  EXPECT_THAT(Pull(pull),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("wanted the task of its certificate")));
  *pull.mutable_sender() = SenderOf(TaskKey("worker", 1), /*incarnation=*/1);
  EXPECT_THAT(Pull(pull), IsOkAndHolds("vvvv"));
}

TEST_F(ParameterServiceTest, RefusesWhoseCertificateHasEnded) {
  caller_ = {Role::kWorker, TaskKey("worker", 1)};
  caller_.valid_until = clock_.Now() + absl::Hours(1);
  PullRequest pull = PullOf(4);
  *pull.mutable_sender() = SenderOf(TaskKey("worker", 1), /*incarnation=*/1);
  EXPECT_THAT(Pull(pull), IsOkAndHolds("vvvv"));
  clock_.Advance(absl::Hours(1));
  EXPECT_THAT(Pull(pull),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("has ended")));
  EXPECT_THAT(said_.lines(),
              ElementsAre(AllOf(HasSubstr("W refused: "),
                                HasSubstr("certificate of /job:worker/task:1"),
                                HasSubstr("has ended"))));
}

TEST_F(ParameterServiceTest, AnAnswerAfterThePeerIsGoneReachesNobody) {
  for (int step = 1; step <= 50; ++step) {
    StubPush push(stub_.get(), step);
    shard_.AwaitHeld(1);
    push.Cancel();
    EXPECT_THAT(push.Await(), StatusIs(absl::StatusCode::kCancelled));
    shard_.AnswerAll();
  }
  server_.Stop();
}

// As a ps drains.
TEST_F(ParameterServiceTest, AServerThatShutsDownAnswersWhatIsUnderWay) {
  const auto service =
      MakeParameterService(&shard_, /*calls=*/nullptr, SystemClock());
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(service.get());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  stub_ = ParameterService::NewStub(grpc::CreateChannel(
      "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  StubPush push(stub_.get(), /*step=*/3);
  shard_.AwaitHeld(1);
  std::thread drain([&] {
    server->Shutdown(ToGrpcDeadline(SystemClock()->Now() + kPatience));
  });
  absl::Status next;
  while (next.ok()) next = Pull(PullOf(4)).status();
  // Cancelled: the server had it when it began to shut down.
  EXPECT_THAT(next.code(), AnyOf(absl::StatusCode::kUnavailable,
                                 absl::StatusCode::kCancelled));
  shard_.Answer(3);
  EXPECT_THAT(push.Await(), IsOkAndHolds(3));
  drain.join();
}

}  // namespace
}  // namespace muster
