#include "ps_server/service/exchange_streams.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/rpc/deadline.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/frame/exchange_codec.h"
#include "common/rpc/protocol.h"
#include "common/rpc/status_conversion.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "gtest/gtest.h"
#include "proto/parameter_service.grpc.pb.h"
#include "ps_server/caller/caller.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/service/entrance.h"
#include "tests/testing/delayed_calls.h"
#include "tests/testing/exchange_server.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/reported_lines.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kMaxUnanswered = ExchangeConnection::kMaxUnanswered;
// No test takes so long.
constexpr absl::Duration kPatience = absl::Seconds(60);

ExchangeRequest PushOf(uint64_t call, int64_t step) {
  ExchangeRequest request;
  request.set_call(call);
  request.mutable_push()->set_step(step);
  request.mutable_push()->set_data("12345678");
  return request;
}

ExchangeRequest PullOf(uint64_t call, int64_t bytes) {
  ExchangeRequest request;
  request.set_call(call);
  request.mutable_pull()->add_slices()->set_length(bytes);
  return request;
}

// A stream of a stub of any language: nothing of Muster's own client.
template <typename Request = ExchangeRequest, typename Reply = ExchangeReply>
class Stub {
 public:
  explicit Stub(const std::shared_ptr<grpc::Channel>& channel)
      : channel_(channel) {
    context_.set_deadline(ToGrpcDeadline(SystemClock()->Now() + kPatience));
    stream_.reset(
        grpc::internal::ClientReaderWriterFactory<Request, Reply>::Create(
            channel_.get(),
            grpc::internal::RpcMethod(
                kExchangeMethod, nullptr,
                grpc::internal::RpcMethod::BIDI_STREAMING),
            &context_));
  }
  grpc::ClientReaderWriter<Request, Reply>* operator->() {
    return stream_.get();
  }
  Reply Read() {
    Reply reply;
    EXPECT_TRUE(stream_->Read(&reply));
    return reply;
  }
  void Cancel() { context_.TryCancel(); }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<Request, Reply>> stream_;
};

// Channels to one address would else share one.
grpc::ChannelArguments OwnConnection() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

class ExchangeStreamsTest : public testing::Test {
 protected:
  ExchangeStreamsTest()
      : server_(&shard_),
        channel_(grpc::CreateChannel(server_.address(),
                                     grpc::InsecureChannelCredentials())) {}

  DelayedCalls shard_;
  ExchangeServer server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(ExchangeStreamsTest, AStubOfAnyLanguageMayPush) {
  Stub stream(channel_);
  ASSERT_TRUE(stream->Write(PushOf(/*call=*/77, /*step=*/5)));
  shard_.AwaitHeld(1);
  EXPECT_EQ(shard_.deadline_of(5), absl::InfiniteFuture());
  shard_.Answer(5);
  const ExchangeReply reply = stream.Read();
  EXPECT_EQ(reply.call(), 77);
  EXPECT_EQ(reply.push().staleness(), 5);
  stream->WritesDone();
  ExchangeReply none;
  EXPECT_FALSE(stream->Read(&none));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ExchangeStreamsTest, ATimeoutIsTheShardsDeadline) {
  Stub stream(channel_);
  ExchangeRequest request = PushOf(1, 1);
  request.set_timeout_ms(30000);
  const absl::Time before = SystemClock()->Now();
  ASSERT_TRUE(stream->Write(request));
  shard_.AwaitHeld(1);
  EXPECT_GE(shard_.deadline_of(1), before + absl::Seconds(30));
  EXPECT_LE(shard_.deadline_of(1), SystemClock()->Now() + absl::Seconds(30));
  shard_.AnswerAll();
}

TEST_F(ExchangeStreamsTest, AnswersInTheOrderOfTheShard) {
  Stub stream(channel_);
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(stream->Write(PushOf(step, step)));
  }
  shard_.AwaitHeld(3);
  for (const int step : {2, 3, 1}) {
    shard_.Answer(step);
    EXPECT_EQ(stream.Read().call(), step);
  }
}

TEST_F(ExchangeStreamsTest, ReadsNoFurtherThanItMayHaveUnanswered) {
  constexpr int kCalls = 5 * kMaxUnanswered;
  Stub stream(channel_);
  for (int step = 1; step <= kCalls; ++step) {
    ASSERT_TRUE(stream->Write(PushOf(step, step)));
  }
  for (int answered = 0; answered < kCalls; answered += kMaxUnanswered) {
    shard_.AwaitHeld(kMaxUnanswered);
    shard_.AnswerAll();
    for (int i = 0; i < kMaxUnanswered; ++i) stream.Read();
  }
  EXPECT_EQ(shard_.most_held(), kMaxUnanswered);
}

TEST_F(ExchangeStreamsTest, APeerThatDoesNotReadIsNotServedAhead) {
  constexpr int kCalls = 200;
  // Requests that gRPC takes off the server's hands before anybody reads.
  constexpr int kOnTheWay = 4;
  Stub stream(channel_);
  std::thread writer([&] {
    for (int call = 1; call <= kCalls; ++call) {
      if (!stream->Write(PullOf(call, kMaxPartBytes))) return;
    }
  });
  // Over a connection of its own: so often could the ps have served the other.
  Stub other(grpc::CreateCustomChannel(
      server_.address(), grpc::InsecureChannelCredentials(), OwnConnection()));
  for (int call = 1; call <= kCalls; ++call) {
    ASSERT_TRUE(other->Write(PullOf(call, 4)));
    other.Read();
  }
  EXPECT_LE(shard_.pulls() - kCalls, kMaxUnanswered + kOnTheWay);
  for (int call = 1; call <= kCalls; ++call) {
    EXPECT_EQ(stream.Read().pull().data().size(), kMaxPartBytes);
  }
  writer.join();
}

TEST_F(ExchangeStreamsTest, AMessageWithoutARequestEndsTheStream) {
  Stub stream(channel_);
  ASSERT_TRUE(stream->Write(PushOf(1, 1)));
  shard_.AwaitHeld(1);
  ExchangeRequest nothing;
  nothing.set_call(2);
  ASSERT_TRUE(stream->Write(nothing));
  // Requests that were read before are answered.
  shard_.AnswerAll();
  EXPECT_EQ(stream.Read().call(), 1);
  ExchangeReply none;
  EXPECT_FALSE(stream->Read(&none));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("call 2 has no request"));
}

grpc::ByteBuffer Bytes(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

using RawStub = Stub<grpc::ByteBuffer, grpc::ByteBuffer>;

TEST_F(ExchangeStreamsTest, BytesThatAreNoMessageEndTheStream) {
  for (const std::string& bytes :
       {std::string("\xff\xff\xff"),
        std::string("\x6a\x7f"
                    "too short"),
        std::string("\x08\x01\x62\x00\x08\x01", 6), std::string()}) {
    RawStub stream(channel_);
    ASSERT_TRUE(stream->Write(Bytes(bytes)));
    grpc::ByteBuffer none;
    EXPECT_FALSE(stream->Read(&none));
    EXPECT_EQ(stream->Finish().error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
}

ExchangeReply Parse(const grpc::ByteBuffer& bytes) {
  grpc::Slice slice;
  EXPECT_TRUE(bytes.DumpToSingleSlice(&slice).ok());
  ExchangeReply reply;
  EXPECT_TRUE(
      reply.ParseFromArray(slice.begin(), static_cast<int>(slice.size())));
  return reply;
}

TEST_F(ExchangeStreamsTest, ABadRequestIsAnsweredAndTheStreamGoesOn) {
  RawStub stream(channel_);
  ExchangeRequest header;
  header.set_call(1);
  ASSERT_TRUE(stream->Write(
      EncodeExchange(header, {DataMethod::kPush, Bytes("\xff\xff")})));
  ExchangeReply reply = Parse(stream.Read());
  EXPECT_EQ(reply.call(), 1);
  EXPECT_EQ(reply.error().code(),
            static_cast<int>(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(IsDamaged(StatusFromDetails(reply.error())));
  EXPECT_EQ(reply.reply_case(), ExchangeReply::REPLY_NOT_SET);

  header.set_call(2);
  ASSERT_TRUE(stream->Write(
      EncodeExchange(header, {static_cast<DataMethod>(4711), Bytes("")})));
  reply = Parse(stream.Read());
  EXPECT_EQ(reply.call(), 2);
  EXPECT_EQ(reply.error().code(),
            static_cast<int>(absl::StatusCode::kUnimplemented));
  EXPECT_TRUE(IsDamaged(StatusFromDetails(reply.error())));
}

TEST_F(ExchangeStreamsTest, AnAnswerThatDoesNotFitIsAnError) {
  Stub stream(channel_);
  ASSERT_TRUE(stream->Write(PullOf(1, kMaxPartBytes + kMaxHeaderBytes)));
  EXPECT_EQ(stream.Read().error().code(),
            static_cast<int>(absl::StatusCode::kResourceExhausted));
  ASSERT_TRUE(stream->Write(PullOf(2, 4)));
  EXPECT_EQ(stream.Read().pull().data(), "vvvv");
}

TEST_F(ExchangeStreamsTest, CloseAnswersWhatWasReadAndEndsTheStream) {
  Stub idle(channel_);
  ASSERT_TRUE(idle->Write(PullOf(1, 4)));
  idle.Read();
  Stub stream(channel_);
  ASSERT_TRUE(stream->Write(PushOf(1, 1)));
  shard_.AwaitHeld(1);
  server_.streams().Close();
  shard_.AnswerAll();
  EXPECT_EQ(stream.Read().call(), 1);
  Stub later(channel_);
  for (Stub<>* one : {&idle, &stream, &later}) {
    ExchangeReply none;
    EXPECT_FALSE((*one)->Read(&none));
    EXPECT_EQ((*one)->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
}

// A chief's request among a worker's.
TEST_F(ExchangeStreamsTest, ChecksTheCallerOfEachRequest) {
  ExchangeServer server(&shard_, {Role::kWorker, TaskKey("worker", 1)});
  Stub stream(grpc::CreateChannel(server.address(),
                                  grpc::InsecureChannelCredentials()));
  ExchangeRequest load;
  load.set_call(1);
  load.mutable_load();
  ASSERT_TRUE(stream->Write(load));
  const ExchangeReply refused = stream.Read();
  EXPECT_EQ(refused.error().code(),
            static_cast<int>(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(refused.error().message(), HasSubstr("ParameterService/Load"));
  ExchangeRequest pull = PullOf(/*call=*/2, /*bytes=*/4);
  ASSERT_TRUE(stream->Write(pull));
  EXPECT_THAT(stream.Read().error().message(),
              HasSubstr("wanted the task of its certificate"));
  *pull.mutable_pull()->mutable_sender() =
      SenderOf(TaskKey("worker", 1), /*incarnation=*/1);
  ASSERT_TRUE(stream->Write(pull));
  EXPECT_EQ(stream.Read().pull().data(), "vvvv");
}

TEST_F(ExchangeStreamsTest, EndsTheStreamWhoseCertificateHasEnded) {
  FakeClock clock;
  ReportedLines said;
  Entrance::Options options;
  options.clock = &clock;
  options.reporter = said.reporter();
  const Entrance entrance(options);
  Caller caller = {Role::kWorker, TaskKey("worker", 1)};
  caller.valid_until = clock.Now() + absl::Hours(1);
  ExchangeServer server(&shard_, caller, &entrance);
  Stub stream(grpc::CreateChannel(server.address(),
                                  grpc::InsecureChannelCredentials()));
  ExchangeRequest pull = PullOf(/*call=*/1, /*bytes=*/4);
  *pull.mutable_pull()->mutable_sender() =
      SenderOf(TaskKey("worker", 1), /*incarnation=*/1);
  ASSERT_TRUE(stream->Write(pull));
  EXPECT_EQ(stream.Read().pull().data(), "vvvv");
  clock.Advance(absl::Hours(1));
  ASSERT_TRUE(stream->Write(pull));
  EXPECT_THAT(stream.Read().error().message(), HasSubstr("has ended"));
  EXPECT_THAT(said.lines(),
              ElementsAre(AllOf(HasSubstr("W refused: "),
                                HasSubstr("certificate of /job:worker/task:1"),
                                HasSubstr("has ended"))));
  ExchangeReply none;
  EXPECT_FALSE(stream->Read(&none));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ExchangeStreamsTest, RefusesTheStreamOfWhoMayHaveNone) {
  ExchangeServer server(&shard_, {Role::kPs, std::nullopt, Transport::kGrpc});
  Stub stream(grpc::CreateChannel(server.address(),
                                  grpc::InsecureChannelCredentials()));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(ExchangeStreamsTest, RefusesOneStreamTooManyOfAConnection) {
  const absl::Time give_up = SystemClock()->Now() + kPatience;
  std::vector<std::unique_ptr<Stub<>>> streams;
  for (int i = 0; i < ExchangeStreams::kMaxOfConnection; ++i) {
    streams.push_back(std::make_unique<Stub<>>(channel_));
    ASSERT_TRUE((*streams.back())->Write(PullOf(1, 4)));
    streams.back()->Read();
  }
  {
    Stub one_more(channel_);
    EXPECT_EQ(one_more->Finish().error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  // One that has ended makes room.
  (*streams[0])->WritesDone();
  EXPECT_TRUE((*streams[0])->Finish().ok());
  // The ps may hear of it a little later than its peer.
  for (bool taken = false; !taken;) {
    Stub another(channel_);
    ExchangeReply reply;
    taken = another->Write(PullOf(1, 4)) && another->Read(&reply);
    ASSERT_LT(SystemClock()->Now(), give_up);
  }
}

TEST_F(ExchangeStreamsTest, AnAnswerAfterThePeerIsGoneReachesNobody) {
  for (int step = 1; step <= 50; ++step) {
    {
      // The server may not have heard yet of the end of those before; of one
      // connection it would refuse the fifth.
      Stub stream(grpc::CreateCustomChannel(server_.address(),
                                            grpc::InsecureChannelCredentials(),
                                            OwnConnection()));
      ASSERT_TRUE(stream->Write(PushOf(1, step)));
      shard_.AwaitHeld(1);
      stream.Cancel();
    }
    shard_.AnswerAll();
  }
  server_.Stop();
}

}  // namespace
}  // namespace muster
