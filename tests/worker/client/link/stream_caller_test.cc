#include "worker/client/link/stream_caller.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/rpc/frame/frame_codec.h"
#include "common/rpc/peer_channel.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "proto/parameter_service.grpc.pb.h"
#include "ps_server/service/exchange_connection.h"
#include "tests/testing/delayed_calls.h"
#include "tests/testing/exchange_server.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/hand_timers.h"
#include "tests/testing/loopback_server.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(60);

absl::Time In(absl::Duration duration) {
  return SystemClock()->Now() + duration;
}

ExchangeBody PushOf(int64_t step, size_t bytes = 8) {
  PushPart part;
  part.set_step(step);
  return {DataMethod::kPush,
          EncodeFrame(part, absl::Cord(std::string(bytes, 'g')))};
}

// An answer, once it is there.
struct Answer {
  absl::Notification given;
  absl::StatusOr<grpc::ByteBuffer> bytes = absl::UnknownError("none");

  // The staleness that the answer to a push tells.
  absl::StatusOr<int64_t> Staleness() {
    given.WaitForNotification();
    if (!bytes.ok()) return bytes.status();
    const auto reply = DecodeFrame<PushReply>(*bytes);
    if (!reply.ok()) return reply.status();
    return reply->header.staleness();
  }
};

StreamCaller::BytesCallback Into(Answer* answer) {
  return [answer](absl::StatusOr<grpc::ByteBuffer> bytes) {
    answer->bytes = std::move(bytes);
    answer->given.Notify();
  };
}

PeerName PeerAt(const std::string& address) {
  return {"/job:ps/task:0", address};
}

class StreamCallerTest : public testing::Test {
 protected:
  StreamCallerTest()
      : server_(&shard_),
        caller_(std::make_unique<StreamCaller>(
            PeerAt(server_.address()),
            PeerChannel::Opener(server_.address(),
                                grpc::InsecureChannelCredentials()))) {}

  void Push(int64_t step, Answer* answer, absl::Duration timeout = kPatience) {
    caller_->Call(PushOf(step), In(timeout), Into(answer));
  }

  DelayedCalls shard_;
  ExchangeServer server_;
  std::unique_ptr<StreamCaller> caller_;
};

TEST_F(StreamCallerTest, TakesAnswersInAnyOrder) {
  Answer answers[4];
  for (const int step : {1, 2, 3}) Push(step, &answers[step]);
  shard_.AwaitHeld(3);
  for (const int step : {2, 3, 1}) {
    shard_.Answer(step);
    EXPECT_THAT(answers[step].Staleness(), IsOkAndHolds(step));
  }
}

TEST_F(StreamCallerTest, ManyThreadsMayCallMoreThanThePsReads) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 10 * ExchangeConnection::kMaxUnanswered;
  std::vector<Answer> answers(kThreads * kCalls);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = thread * kCalls; i < (thread + 1) * kCalls; ++i) {
        Push(i, &answers[i]);
      }
    });
  }
  constexpr int kBatch = ExchangeConnection::kMaxUnanswered;
  for (int i = 0; i < kThreads * kCalls; i += kBatch) {
    shard_.AwaitHeld(kBatch);
    shard_.AnswerAll();
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads * kCalls; ++i) {
    EXPECT_THAT(answers[i].Staleness(), IsOkAndHolds(i));
  }
  EXPECT_EQ(shard_.most_held(), kBatch);
}

// In a time of the test's own: both calls have come before it passes.
TEST_F(StreamCallerTest, ADeadlineEndsOneCallAndNoOther) {
  FakeClock clock;
  auto timers = std::make_unique<HandTimers>();
  HandTimers* const by_hand = timers.get();
  StreamCaller caller(PeerAt(server_.address()),
                      PeerChannel::Opener(server_.address(),
                                          grpc::InsecureChannelCredentials()),
                      &clock, std::move(timers));
  const auto push = [&](int64_t step, absl::Duration timeout, Answer* answer) {
    caller.Call(PushOf(step), clock.Now() + timeout, Into(answer));
  };
  Answer late;
  Answer other;
  Answer next;
  push(1, absl::Milliseconds(50), &late);
  push(2, kPatience, &other);
  shard_.AwaitHeld(2);
  by_hand->RunUntil(clock.Now());
  EXPECT_FALSE(late.given.HasBeenNotified());
  clock.Advance(absl::Milliseconds(50));
  by_hand->RunUntil(clock.Now());
  EXPECT_THAT(late.Staleness(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "/job:ps/task:0 at " + server_.address() +
                           ": no answer in time"));
  EXPECT_FALSE(other.given.HasBeenNotified());
  // The late one's reaches nobody.
  shard_.Answer(1);
  shard_.Answer(2);
  EXPECT_THAT(other.Staleness(), IsOkAndHolds(2));
  push(3, kPatience, &next);
  shard_.AwaitHeld(1);
  shard_.Answer(3);
  EXPECT_THAT(next.Staleness(), IsOkAndHolds(3));
}

TEST_F(StreamCallerTest, ADeadlineThatHasPassedIsToldAtOnce) {
  Answer answer;
  Push(1, &answer, -absl::Seconds(1));
  EXPECT_THAT(answer.Staleness(),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(StreamCallerTest, EveryCallEndsWhenThePsIsGone) {
  Answer answers[3];
  for (int i = 0; i < 3; ++i) Push(i, &answers[i]);
  shard_.AwaitHeld(3);
  server_.Stop();
  for (Answer& answer : answers) {
    EXPECT_THAT(answer.Staleness(),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr("/job:ps/task:0 at 127.0.0.1:")));
  }
  // The next one opens a stream, to nobody.
  Answer next;
  Push(4, &next);
  EXPECT_THAT(next.Staleness(), StatusIs(absl::StatusCode::kUnavailable));
  shard_.AnswerAll();
}

TEST_F(StreamCallerTest, AStreamThatThePsEndsIsOpenedAnew) {
  Answer first;
  Push(1, &first);
  shard_.AwaitHeld(1);
  shard_.Answer(1);
  EXPECT_THAT(first.Staleness(), IsOkAndHolds(1));
  server_.streams().Close();
  Answer refused;
  Push(2, &refused);
  EXPECT_THAT(refused.Staleness(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("the ps is shutting down")));
}

TEST_F(StreamCallerTest, RefusesARequestOverTheLimitAndNoOther) {
  Answer large;
  Answer whole;
  caller_->Call(PushOf(1, kMaxPartBytes + kMaxHeaderBytes), In(kPatience),
                Into(&large));
  EXPECT_THAT(large.Staleness(),
              StatusIs(absl::StatusCode::kResourceExhausted));
  caller_->Call(PushOf(2, kMaxPartBytes), In(kPatience), Into(&whole));
  shard_.AwaitHeld(1);
  shard_.Answer(2);
  EXPECT_THAT(whole.Staleness(), IsOkAndHolds(2));
}

TEST_F(StreamCallerTest, ClosingEndsEveryCallOnItsWay) {
  constexpr int kCalls = 3 * ExchangeConnection::kMaxUnanswered;
  std::vector<Answer> answers(kCalls);
  for (int i = 0; i < kCalls; ++i) Push(i, &answers[i]);
  shard_.AwaitHeld(ExchangeConnection::kMaxUnanswered);
  caller_.reset();
  for (Answer& answer : answers) {
    ASSERT_TRUE(answer.given.HasBeenNotified());
    EXPECT_THAT(answer.Staleness(), StatusIs(absl::StatusCode::kCancelled));
  }
  shard_.AnswerAll();
}

// See UnaryCallerTest: a gRPC thread must not drop the last reference.
TEST(StreamCallerLifeTest, NoStreamHoldsTheChannelWhenTheCallerIsGone) {
  DelayedCalls shard;
  ExchangeServer server(&shard);
  for (const std::string& address :
       {std::string("127.0.0.1:1"), server.address()}) {
    const auto channel =
        grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    for (int i = 0; i < 300; ++i) {
      std::atomic<int> answered = 0;
      {
        StreamCaller caller(PeerAt(address), [channel] { return channel; });
        for (int call = 0; call < 4; ++call) {
          caller.Call(
              PushOf(call), In(kPatience),
              [&](const absl::StatusOr<grpc::ByteBuffer>&) { ++answered; });
        }
      }
      ASSERT_EQ(channel.use_count(), 1) << "after repeat " << i;
      ASSERT_EQ(answered, 4);
    }
    shard.AnswerAll();
  }
}

// A ps that does what a test says with each stream, the first, the second, ...
class ScriptedServer : public ParameterService::Service {
 public:
  using Stream = grpc::ServerReaderWriter<ExchangeReply, ExchangeRequest>;
  using Script =
      std::function<grpc::Status(int, grpc::ServerContext*, Stream*)>;

  explicit ScriptedServer(Script script)
      : script_(std::move(script)),
        server_([this](grpc::ServerBuilder* builder) {
          builder->RegisterService(this);
        }) {}
  ~ScriptedServer() override { server_.Stop(); }

  grpc::Status Exchange(grpc::ServerContext* context, Stream* stream) override {
    return script_(++streams_, context, stream);
  }
  const std::string& address() const { return server_.address(); }
  int streams() const { return streams_; }

 private:
  const Script script_;
  std::atomic<int> streams_ = 0;
  LoopbackServer server_;
};

// Answers everything.
grpc::Status Echo(ScriptedServer::Stream* stream) {
  for (ExchangeRequest request; stream->Read(&request);) {
    ExchangeReply reply;
    reply.set_call(request.call());
    reply.mutable_push()->set_staleness(request.push().step());
    stream->Write(reply);
  }
  return grpc::Status::OK;
}

absl::StatusOr<int64_t> PushTo(StreamCaller* caller, int64_t step) {
  Answer answer;
  caller->Call(PushOf(step), In(kPatience), Into(&answer));
  return answer.Staleness();
}

std::unique_ptr<StreamCaller> CallerOf(const ScriptedServer& server) {
  return std::make_unique<StreamCaller>(
      PeerAt(server.address()),
      PeerChannel::Opener(server.address(),
                          grpc::InsecureChannelCredentials()));
}

TEST(StreamCallerPeerTest, ABrokenStreamIsFollowedByAnother) {
  ScriptedServer server(
      [](int number, grpc::ServerContext*, ScriptedServer::Stream* stream) {
        ExchangeRequest request;
        if (number > 1) return Echo(stream);
        stream->Read(&request);
        return grpc::Status(grpc::StatusCode::INTERNAL, "fell over");
      });
  const auto caller = CallerOf(server);
  EXPECT_THAT(PushTo(caller.get(), 1),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("the stream of tensors broke: INTERNAL: fell "
                                 "over")));
  EXPECT_THAT(PushTo(caller.get(), 2), IsOkAndHolds(2));
  EXPECT_THAT(PushTo(caller.get(), 3), IsOkAndHolds(3));
  EXPECT_EQ(server.streams(), 2);
}

TEST(StreamCallerPeerTest, AnAnswerThatNobodyAskedForIsPassedOver) {
  ScriptedServer server(
      [](int, grpc::ServerContext*, ScriptedServer::Stream* stream) {
        ExchangeReply reply;
        reply.set_call(4711);
        reply.mutable_push();
        stream->Write(reply);
        return Echo(stream);
      });
  EXPECT_THAT(PushTo(CallerOf(server).get(), 1), IsOkAndHolds(1));
}

TEST(StreamCallerPeerTest, AMalformedAnswerEndsTheStream) {
  ScriptedServer server([](int number, grpc::ServerContext* context,
                           ScriptedServer::Stream* stream) {
    if (number > 1) return Echo(stream);
    ExchangeReply reply;
    reply.mutable_push();
    // Behind the reply, which is then not the last field.
    reply.GetReflection()->MutableUnknownFields(&reply)->AddVarint(4711, 1);
    stream->Write(reply);
    for (ExchangeRequest request; stream->Read(&request);) {
    }
    EXPECT_TRUE(context->IsCancelled());
    return grpc::Status::OK;
  });
  const auto caller = CallerOf(server);
  EXPECT_THAT(PushTo(caller.get(), 1),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("malformed muster.ExchangeReply")));
  EXPECT_THAT(PushTo(caller.get(), 2), IsOkAndHolds(2));
}

TEST(StreamCallerPeerTest, AnErrorIsThePeersOwn) {
  ScriptedServer server(
      [](int, grpc::ServerContext*, ScriptedServer::Stream* stream) {
        ExchangeRequest request;
        stream->Read(&request);
        ExchangeReply reply;
        reply.set_call(request.call());
        reply.mutable_error()->set_code(
            static_cast<int>(absl::StatusCode::kFailedPrecondition));
        reply.mutable_error()->set_message("fenced: epoch 3");
        stream->Write(reply);
        return grpc::Status::OK;
      });
  EXPECT_THAT(
      PushTo(CallerOf(server).get(), 1),
      StatusIs(absl::StatusCode::kFailedPrecondition, "fenced: epoch 3"));
}

TEST(StreamCallerPeerTest, AnOlderPsIsNamed) {
  class Older : public ParameterService::Service {};
  Older older;
  const LoopbackServer server([&older](grpc::ServerBuilder* builder) {
    builder->RegisterService(&older);
  });
  StreamCaller caller(PeerAt(server.address()),
                      PeerChannel::Opener(server.address(),
                                          grpc::InsecureChannelCredentials()));
  EXPECT_THAT(PushTo(&caller, 1), StatusIs(absl::StatusCode::kUnimplemented));
}

void CountDown(void* counter) {
  static_cast<absl::BlockingCounter*>(counter)->DecrementCount();
}

TEST(StreamCallerPeerTest, APeerThatNeverReadsKeepsNoMemoryOfTheCaller) {
  constexpr int kCalls = 16;
  ScriptedServer server(
      [](int, grpc::ServerContext* context, ScriptedServer::Stream*) {
        while (!context->IsCancelled()) std::this_thread::yield();
        return grpc::Status::OK;
      });
  const auto caller = CallerOf(server);
  const std::string memory(kMaxPartBytes, 'g');
  absl::BlockingCounter released(kCalls);
  std::vector<Answer> answers(kCalls);
  for (Answer& answer : answers) {
    const grpc::Slice slice(const_cast<char*>(memory.data()), memory.size(),
                            &CountDown, &released);
    caller->Call({DataMethod::kPush, grpc::ByteBuffer(&slice, 1)},
                 In(absl::Milliseconds(200)), Into(&answer));
  }
  for (Answer& answer : answers) {
    EXPECT_THAT(answer.Staleness().status().code(),
                AnyOf(absl::StatusCode::kDeadlineExceeded,
                      absl::StatusCode::kUnavailable));
  }
  released.Wait();
}

}  // namespace
}  // namespace muster
