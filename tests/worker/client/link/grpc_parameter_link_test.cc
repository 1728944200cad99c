#include "worker/client/link/grpc_parameter_link.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/rpc/call_table.h"
#include "common/rpc/deadline.h"
#include "common/rpc/frame/frame_codec.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "proto/parameter_service.grpc.pb.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/client/link/frame_server.h"

namespace muster {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// Answers a Push with the bytes it got as staleness and a Pull with as many
// bytes as the first slice asks for.
absl::StatusOr<grpc::ByteBuffer> Serve(const std::string& method,
                                       const grpc::ByteBuffer& request) {
  if (method == "/muster.ParameterService/Push") {
    absl::StatusOr<Frame<PushPart>> frame = DecodeFrame<PushPart>(request);
    if (!frame.ok()) return frame.status();
    if (frame->header.step() == 13) {
      return absl::FailedPreconditionError("fenced: step 13");
    }
    PushReply reply;
    reply.set_staleness(static_cast<int64_t>(frame->data.size()));
    return EncodeFrame(reply, absl::Cord());
  }
  if (method == "/muster.ParameterService/Pull") {
    absl::StatusOr<Frame<PullRequest>> frame =
        DecodeFrame<PullRequest>(request);
    if (!frame.ok()) return frame.status();
    PullReply header;
    header.set_version(7);
    return EncodeFrame(
        header, absl::Cord(std::string(frame->header.slices(0).length(), 'v')));
  }
  if (method == "/muster.ParameterService/PullRows") {
    absl::StatusOr<Frame<PullRowsRequest>> frame =
        DecodeFrame<PullRowsRequest>(request);
    if (!frame.ok()) return frame.status();
    PullRowsReply header;
    header.set_version(frame->header.rows(0).count());
    return EncodeFrame(header, frame->data);
  }
  return absl::UnimplementedError(method);
}

absl::Time In(absl::Duration duration) {
  return MonotonicClock().Now() + duration;
}

// Starts a call and waits for its answer.
template <typename Reply, typename Start>
absl::StatusOr<Reply> Await(Start start) {
  absl::Notification answered;
  absl::StatusOr<Reply> result = absl::UnknownError("no answer");
  start([&](absl::StatusOr<Reply> reply) {
    result = std::move(reply);
    answered.Notify();
  });
  answered.WaitForNotification();
  return result;
}

class GrpcParameterLinkTest : public testing::Test {
 protected:
  GrpcParameterLinkTest()
      : server_(&Serve),
        link_({"/job:ps/task:0", server_.address()},
              grpc::InsecureChannelCredentials()) {}

  absl::StatusOr<Frame<PushReply>> Push(int64_t step, size_t bytes) {
    Frame<PushPart> frame;
    frame.header.set_step(step);
    frame.data = absl::Cord(std::string(bytes, 'g'));
    return Await<Frame<PushReply>>([&](ReplyCallback<Frame<PushReply>> done) {
      link_.Push(frame, In(absl::Seconds(30)), std::move(done));
    });
  }

  FrameServer server_;
  GrpcParameterLink link_;
};

TEST_F(GrpcParameterLinkTest, PushesAWholePart) {
  const absl::StatusOr<Frame<PushReply>> reply = Push(1, kMaxPartBytes);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->header.staleness(), kMaxPartBytes);
}

TEST_F(GrpcParameterLinkTest, PullsAWholePart) {
  PullRequest request;
  request.add_slices()->set_length(kMaxPartBytes);
  const auto reply =
      Await<Frame<PullReply>>([&](ReplyCallback<Frame<PullReply>> done) {
        link_.Pull(request, In(absl::Seconds(30)), std::move(done));
      });
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->header.version(), 7);
  EXPECT_EQ(reply->data, std::string(kMaxPartBytes, 'v'));
}

TEST_F(GrpcParameterLinkTest, PullRows_HasDataBothWays) {
  Frame<PullRowsRequest> request;
  request.header.add_rows()->set_count(3);
  request.data = absl::Cord(std::string(kMaxPartBytes, 'i'));
  const auto reply = Await<Frame<PullRowsReply>>(
      [&](ReplyCallback<Frame<PullRowsReply>> done) {
        link_.PullRows(request, In(absl::Seconds(30)), std::move(done));
      });
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->header.version(), 3);
  EXPECT_EQ(reply->data, request.data);
}

TEST_F(GrpcParameterLinkTest, KeepsTheFencedMessage) {
  EXPECT_THAT(Push(13, 4), StatusIs(absl::StatusCode::kFailedPrecondition,
                                    "fenced: step 13"));
}

TEST_F(GrpcParameterLinkTest, RefusesAMessageOverTheLimit) {
  EXPECT_THAT(Push(1, kMaxPartBytes + kMaxHeaderBytes + 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Sent message larger than max")));
}

TEST_F(GrpcParameterLinkTest, TheServerRefusesAMessageOverTheLimit) {
  // A client with gRPC's own settings: the server must be the one to refuse.
  const auto stub = ParameterService::NewStub(grpc::CreateChannel(
      server_.address(), grpc::InsecureChannelCredentials()));
  PushPart part;
  part.set_data(std::string(kMaxPartBytes + kMaxHeaderBytes + 1, 'g'));
  PushReply reply;
  grpc::ClientContext context;
  context.set_deadline(ToGrpcDeadline(In(absl::Seconds(30))));
  EXPECT_EQ(stub->Push(&context, part, &reply).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(GrpcParameterLinkTest, TheServerInflatesNothing) {
  const auto stub = ParameterService::NewStub(grpc::CreateChannel(
      server_.address(), grpc::InsecureChannelCredentials()));
  PushPart part;
  part.set_data(std::string(64 << 20, '\0'));
  PushReply reply;
  grpc::ClientContext context;
  context.set_deadline(ToGrpcDeadline(In(absl::Seconds(60))));
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  const grpc::Status status = stub->Push(&context, part, &reply);
  EXPECT_THAT(status.error_code(), AnyOf(grpc::StatusCode::UNIMPLEMENTED,
                                         grpc::StatusCode::INVALID_ARGUMENT))
      << status.error_message();
}

TEST_F(GrpcParameterLinkTest, AStubOfAnyLanguageMayPush) {
  const auto stub = ParameterService::NewStub(grpc::CreateChannel(
      server_.address(), grpc::InsecureChannelCredentials()));
  PushPart part;
  part.set_step(2);
  part.set_data("12345678");
  PushReply reply;
  grpc::ClientContext context;
  context.set_deadline(ToGrpcDeadline(In(absl::Seconds(30))));
  ASSERT_TRUE(stub->Push(&context, part, &reply).ok());
  EXPECT_EQ(reply.staleness(), 8);
}

TEST(GrpcParameterLinkFailureTest, ExplainsARefusedConnection) {
  // A port that was free a moment ago.
  std::string address;
  { address = FrameServer(&Serve).address(); }
  GrpcParameterLink link({"/job:ps/task:1", address},
                         grpc::InsecureChannelCredentials());
  const auto reply = Await<HelloReply>([&](ReplyCallback<HelloReply> done) {
    link.Call(kHelloCall, {}, In(absl::Seconds(20)), std::move(done));
  });
  EXPECT_THAT(reply, StatusIs(absl::StatusCode::kUnavailable,
                              "/job:ps/task:1 at " + address +
                                  ": connection refused; nothing listens "
                                  "there yet"));
}

TEST(GrpcParameterLinkFailureTest, ExplainsANameThatDoesNotResolve) {
  GrpcParameterLink link({"/job:ps/task:0", "no-such-host.invalid:2222"},
                         grpc::InsecureChannelCredentials());
  const auto reply = Await<HelloReply>([&](ReplyCallback<HelloReply> done) {
    link.Call(kHelloCall, {}, In(absl::Seconds(30)), std::move(done));
  });
  EXPECT_THAT(reply, StatusIs(absl::StatusCode::kUnavailable,
                              HasSubstr("no-such-host.invalid:2222: the host "
                                        "name does not resolve")));
}

TEST(GrpcParameterLinkFailureTest, ADeadlineNamesThePeer) {
  FrameServer server(&Serve);
  GrpcParameterLink link({"/job:ps/task:0", server.address()},
                         grpc::InsecureChannelCredentials());
  const auto reply = Await<HelloReply>([&](ReplyCallback<HelloReply> done) {
    link.Call(kHelloCall, {}, In(-absl::Seconds(1)), std::move(done));
  });
  EXPECT_THAT(reply, StatusIs(absl::StatusCode::kDeadlineExceeded,
                              HasSubstr("/job:ps/task:0 at 127.0.0.1:")));
}

}  // namespace
}  // namespace muster
