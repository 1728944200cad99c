// The ps's end of a TCP connection, with workers that keep to the rules and
// with such that do not.
#include "ps_server/service/tcp_connection.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/frame/data_method.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/caller/caller.h"
#include "tests/ps_server/service/raw_tcp_worker.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/delayed_calls.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Answer = RawTcpWorker::Answer;

constexpr int kMaxUnanswered = TcpConnection::kMaxUnanswered;
const std::string& kToken = *new std::string(kTensorTokenBytes, 't');

// DelayedCalls that counts pulls, and notes where values may go.
class NotingCalls : public DelayedCalls {
 public:
  void PullInto(const PullRequest& request, ValueMemory memory,
                absl::Time deadline,
                ReplyCallback<Frame<PullReply>> done) override {
    ++pulled;
    DelayedCalls::PullInto(request, std::move(memory), deadline,
                           std::move(done));
  }
  void PushInto(Frame<PushPart> request, PushContext context,
                absl::Time deadline,
                ReplyCallback<Frame<PushReply>> done) override {
    if (request.header.wants_values()) {
      const char* const data = request.data.Chunks().begin()->data();
      Frame<PushReply> reply;
      reply.data = context.memory(values_bytes, [&](char* memory) {
        in_place = memory == data;
        std::fill_n(memory, values_bytes, 'n');
      });
      return done(std::move(reply));
    }
    DelayedCalls::PushInto(std::move(request), std::move(context), deadline,
                           std::move(done));
  }

  std::atomic<int> pulled = 0;
  size_t values_bytes = 0;
  bool in_place = false;
};

std::string PushOf(int64_t step) {
  return MakePush(MakeSender(0, 1), step, {}, absl::Cord())
      .header.SerializeAsString();
}

std::string PullOf(int64_t bytes) {
  return MakePull(MakeSender(0, 1), {MakeSlice("w", 0, bytes)})
      .SerializeAsString();
}

class TcpConnectionTest : public testing::Test {
 protected:
  TcpConnectionTest()
      : loop_(*SocketLoop::Create()), thread_([this] { loop_->Run(); }) {}
  ~TcpConnectionTest() override { StopLoop(); }

  void StopLoop() {
    if (loop_ == nullptr) return;
    loop_->Stop();
    thread_.join();
    loop_ = nullptr;
  }

  RawTcpWorker Connect() {
    LoopbackPair pair = ConnectLoopback();
    TcpConnection::Parts parts;
    parts.shard = &shard_;
    parts.clock = &clock_;
    parts.pool = pool_;
    parts.loop = loop_;
    parts.open = [](FileDescriptor socket) {
      return MakePlainChannel(std::move(socket));
    };
    parts.admit = [this](TcpConnection*, absl::string_view token,
                         absl::string_view) -> absl::StatusOr<Caller> {
      if (token != kToken) return absl::PermissionDeniedError("whose token?");
      return caller_;
    };
    parts.on_end = [this](TcpConnection*, const absl::Status& why) {
      absl::MutexLock lock(&mu_);
      ends_.push_back(why);
    };
    const auto connection =
        std::make_shared<TcpConnection>(std::move(parts), std::move(pair.ps));
    connection_ = connection;
    loop_->Add(connection);
    return RawTcpWorker(std::move(pair.worker));
  }
  // One that is let in.
  RawTcpWorker Join() {
    RawTcpWorker worker = Connect();
    EXPECT_TRUE(worker.Greet(kToken));
    EXPECT_THAT(worker.AwaitStatus(), IsOk());
    return worker;
  }

  // Of the sockets of both ends of the newest connection.
  void SetBuffers(const RawTcpWorker& worker, int size_bytes) {
    for (const int fd : {worker.fd(), connection_.lock()->fd()}) {
      for (const int buffer : {SO_SNDBUF, SO_RCVBUF}) {
        setsockopt(fd, SOL_SOCKET, buffer, &size_bytes, sizeof(size_bytes));
      }
    }
  }

  // Why a connection ended.
  absl::Status AwaitEnd() {
    const auto has_ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return !ends_.empty();
    };
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&has_ended));
    return ends_.back();
  }

  void ExpectServes() {
    RawTcpWorker worker = Join();
    ASSERT_TRUE(worker.Send(1, DataMethod::kPull, PullOf(4)));
    EXPECT_EQ(worker.Await().value().data, "vvvv");
  }

  FakeClock clock_;
  NotingCalls shard_;
  const std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
  Caller caller_;
  absl::Mutex mu_;
  std::vector<absl::Status> ends_ ABSL_GUARDED_BY(mu_);
  // The newest.
  std::weak_ptr<TcpConnection> connection_;
  std::shared_ptr<SocketLoop> loop_;
  std::thread thread_;
};

// ---- The greeting -------------------------------------------------------

TEST_F(TcpConnectionTest, AWorkerWithoutAnOffer_IsToldAndHungUpOn) {
  RawTcpWorker worker = Connect();
  ASSERT_TRUE(worker.Greet(std::string(kTensorTokenBytes, 'x')));
  ASSERT_TRUE(worker.Send(1, DataMethod::kPull, PullOf(4)));
  EXPECT_THAT(
      worker.AwaitStatus(),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("whose token?")));
  EXPECT_EQ(worker.Await(), std::nullopt);
  EXPECT_EQ(shard_.pulled, 0);
}

TEST_F(TcpConnectionTest, WhoShowsNoTokenIn10Seconds_IsHungUpOn) {
  for (const absl::string_view beginning :
       {absl::string_view(), kTensorMagic.substr(0, 3), kTensorMagic}) {
    RawTcpWorker worker = Connect();
    ASSERT_TRUE(worker.SendBytes(beginning));
    clock_.Advance(TcpConnection::kGreetingPatience);
    EXPECT_EQ(worker.Await(), std::nullopt);
    EXPECT_THAT(AwaitEnd(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                     HasSubstr("no token within 10s")));
  }
}

TEST_F(TcpConnectionTest, ATokenInPieces_IsRead) {
  RawTcpWorker worker = Connect();
  for (const char byte : absl::StrCat(kTensorMagic, kToken)) {
    ASSERT_TRUE(worker.SendBytes(absl::string_view(&byte, 1)));
  }
  EXPECT_THAT(worker.AwaitStatus(), IsOk());
}

TEST_F(TcpConnectionTest, WhoBeginsOtherwise_IsHungUpOn) {
  RawTcpWorker worker = Connect();
  ASSERT_TRUE(worker.SendBytes("\xa7MUSTER9 and more"));
  EXPECT_EQ(worker.Await(), std::nullopt);
  EXPECT_THAT(AwaitEnd(), StatusIs(absl::StatusCode::kInvalidArgument));
}

// ---- Requests -----------------------------------------------------------

TEST_F(TcpConnectionTest, ARequestIsTheShardsWithItsDeadline) {
  RawTcpWorker worker = Join();
  ASSERT_TRUE(worker.Send(/*call=*/77, DataMethod::kPush, PushOf(5)));
  shard_.AwaitHeld(1);
  EXPECT_EQ(shard_.deadline_of(5),
            clock_.Now() + absl::Milliseconds(RawTcpWorker::kTimeoutMs));
  shard_.Answer(5);
  const std::optional<Answer> answer = worker.Await();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->header.call, 77);
  PushReply reply;
  ASSERT_TRUE(reply.ParseFromString(answer->fields));
  EXPECT_EQ(reply.staleness(), 5);
}

TEST_F(TcpConnectionTest, AnswersInTheOrderOfTheShard) {
  RawTcpWorker worker = Join();
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(worker.Send(step, DataMethod::kPush, PushOf(step)));
  }
  shard_.AwaitHeld(3);
  for (const int step : {2, 3, 1}) {
    shard_.Answer(step);
    EXPECT_EQ(worker.Await().value().header.call, step);
  }
}

TEST_F(TcpConnectionTest, MessagesThatMakeNoSense_AreAnswered) {
  RawTcpWorker worker = Join();
  for (const DataMethod method :
       {DataMethod::kLoad, DataMethod::kPull, DataMethod::kPush,
        DataMethod::kReadSnapshot}) {
    for (const std::string& garbage :
         {std::string(100, '\xff'), std::string("\x7a\xff\xff\xff\x7f", 5),
          std::string(kMaxHeaderBytes, '\0')}) {
      ASSERT_TRUE(worker.Send(3, method, garbage));
      EXPECT_THAT(worker.AwaitStatus(),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("are not a muster.")));
    }
  }
  ASSERT_TRUE(worker.Send(4, DataMethod::kPull, PullOf(4), "tensors"));
  EXPECT_THAT(worker.AwaitStatus(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("muster.PullRequest carries tensors")));
  ASSERT_TRUE(worker.Send(5, static_cast<DataMethod>(4711), ""));
  EXPECT_THAT(worker.AwaitStatus(), StatusIs(absl::StatusCode::kUnimplemented,
                                             HasSubstr("no call 4711")));
}

TEST_F(TcpConnectionTest, BytesThatAreNoFrame_EndItWhenOthersAreAnswered) {
  std::string wrong_crc = RawTcpWorker::Encode(2, DataMethod::kPull, PullOf(4));
  wrong_crc[0] ^= 1;
  const std::string too_long =
      EncodeFrameHeader({2, 13, 0, uint64_t{1} << 40, 1});
  const std::string too_many_fields =
      EncodeFrameHeader({2, 13, 1u << 31, 0, 1});
  for (const std::string& bytes : {wrong_crc, too_long, too_many_fields}) {
    RawTcpWorker worker = Join();
    ASSERT_TRUE(worker.Send(1, DataMethod::kPush, PushOf(1)));
    shard_.AwaitHeld(1);
    ASSERT_TRUE(worker.SendBytes(bytes));
    ASSERT_TRUE(worker.Send(3, DataMethod::kPull, PullOf(4)));
    shard_.AnswerAll();
    EXPECT_EQ(worker.Await().value().header.call, 1);
    EXPECT_EQ(worker.Await(), std::nullopt);
    { const RawTcpWorker gone = std::move(worker); }
    EXPECT_THAT(AwaitEnd(), StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_EQ(shard_.pulled, 0);
  EXPECT_LE(pool_->idle_bytes(), size_t{64} << 10) << "memory for no frame";
}

TEST_F(TcpConnectionTest, HalfAFrame_HarmsNobody) {
  const std::string whole =
      RawTcpWorker::Encode(1, DataMethod::kPush, PushOf(1), "12345678");
  for (size_t size = 1; size < whole.size(); size += 7) {
    RawTcpWorker silent = Join();
    ASSERT_TRUE(silent.SendBytes(whole.substr(0, size)));
    ExpectServes();
  }
  ExpectServes();
}

// ---- Who does not read --------------------------------------------------

TEST_F(TcpConnectionTest, ReadsNoFurtherThanItMayHaveUnanswered) {
  constexpr int kCalls = 5 * kMaxUnanswered;
  RawTcpWorker worker = Join();
  for (int step = 1; step <= kCalls; ++step) {
    ASSERT_TRUE(worker.Send(step, DataMethod::kPush, PushOf(step)));
  }
  for (int answered = 0; answered < kCalls; answered += kMaxUnanswered) {
    shard_.AwaitHeld(kMaxUnanswered);
    shard_.AnswerAll();
    for (int i = 0; i < kMaxUnanswered; ++i) {
      ASSERT_THAT(worker.AwaitStatus(), IsOk());
    }
  }
  EXPECT_EQ(shard_.most_held(), kMaxUnanswered);
}

TEST_F(TcpConnectionTest, APeerThatDoesNotRead_IsNotServedAhead) {
  constexpr int kCalls = 200;
  // Answers that the sockets of both ends hold.
  constexpr int kInSockets = 4;
  RawTcpWorker worker = Join();
  SetBuffers(worker, /*size_bytes=*/256 * 1024);
  for (int call = 1; call <= kCalls; ++call) {
    ASSERT_TRUE(worker.Send(call, DataMethod::kPull, PullOf(kMaxPartBytes)));
  }
  // So often the ps could have served the other.
  RawTcpWorker other = Join();
  for (int call = 1; call <= kCalls; ++call) {
    ASSERT_TRUE(other.Send(call, DataMethod::kPull, PullOf(4)));
    EXPECT_EQ(other.Await().value().data, "vvvv");
  }
  EXPECT_LE(shard_.pulled - kCalls, kMaxUnanswered + kInSockets);
  for (int call = 1; call <= kCalls; ++call) {
    const std::optional<Answer> answer = worker.Await();
    ASSERT_TRUE(answer.has_value());
    ASSERT_EQ(answer->header.call, call);
    ASSERT_EQ(answer->data.size(), kMaxPartBytes);
  }
}

TEST_F(TcpConnectionTest, AnAnswerThatDoesNotFit_IsAnError) {
  RawTcpWorker worker = Join();
  ASSERT_TRUE(worker.Send(1, DataMethod::kPull, PullOf(kMaxPartBytes + 1)));
  EXPECT_THAT(worker.AwaitStatus(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("ask for fewer slices")));
  ASSERT_TRUE(worker.Send(2, DataMethod::kPull, PullOf(4)));
  EXPECT_EQ(worker.Await().value().data, "vvvv");
}

// ---- Values where the gradient was --------------------------------------

TEST_F(TcpConnectionTest, ValuesTakeThePlaceOfTheGradient_IfTheyFillIt) {
  RawTcpWorker worker = Join();
  const auto push = [&](const std::string& codec, size_t values_bytes) {
    Frame<PushPart> request =
        MakePush(MakeSender(0, 1), 1, {}, absl::Cord("12345678"));
    request.header.set_wants_values(true);
    request.header.set_values_codec(codec);
    shard_.values_bytes = values_bytes;
    EXPECT_TRUE(worker.Send(1, DataMethod::kPush, request));
    EXPECT_EQ(worker.Await().value().data, std::string(values_bytes, 'n'));
    return shard_.in_place;
  };
  EXPECT_TRUE(push("", 8));
  EXPECT_FALSE(push("", 12));
  EXPECT_FALSE(push("", 4));
  EXPECT_FALSE(push("fp16", 8));
}

// ---- Callers ------------------------------------------------------------

// A chief's request among a worker's.
TEST_F(TcpConnectionTest, ChecksTheCallerOfEachRequest) {
  caller_ = {Role::kWorker, TaskKey("worker", 1), Transport::kTcp};
  RawTcpWorker worker = Join();
  ASSERT_TRUE(worker.Send(1, DataMethod::kLoad, ""));
  EXPECT_THAT(worker.AwaitStatus(),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("ParameterService/Load over TCP")));
  ASSERT_TRUE(worker.Send(2, DataMethod::kPull, PullOf(4)));
  EXPECT_THAT(worker.AwaitStatus(),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("wanted the task of its certificate")));
  EXPECT_EQ(shard_.pulled, 0);
}

TEST_F(TcpConnectionTest, WhoseCertificateHasEnded_IsToldAndHungUpOn) {
  caller_ = {Role::kWorker, TaskKey("worker", 0), Transport::kTcp};
  caller_.valid_until = absl::InfinitePast();
  RawTcpWorker worker = Join();
  ASSERT_TRUE(worker.Send(1, DataMethod::kPull, PullOf(4)));
  EXPECT_THAT(worker.AwaitStatus(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("has ended")));
  EXPECT_EQ(worker.Await(), std::nullopt);
}

// ---- The end ------------------------------------------------------------

TEST_F(TcpConnectionTest, CloseAnswersWhatWasReadAndHangsUp) {
  RawTcpWorker worker = Join();
  ASSERT_TRUE(worker.Send(1, DataMethod::kPush, PushOf(1)));
  shard_.AwaitHeld(1);
  connection_.lock()->Close(absl::UnavailableError("going"));
  // Comes too late to be read, and destroys nothing.
  ASSERT_TRUE(worker.Send(2, DataMethod::kPull, PullOf(4)));
  shard_.AnswerAll();
  EXPECT_EQ(worker.Await().value().header.call, 1);
  EXPECT_EQ(worker.Await(), std::nullopt);
  { const RawTcpWorker gone = std::move(worker); }
  EXPECT_EQ(AwaitEnd().message(), "going");
  EXPECT_EQ(shard_.pulled, 0);
}

// Bytes that come to a closed socket destroy what it has to send yet.
TEST_F(TcpConnectionTest, RequestsAfterClose_DestroyNoAnswer) {
  RawTcpWorker worker = Join();
  SetBuffers(worker, /*size_bytes=*/128 * 1024);
  // More than the worker's socket holds, less than both.
  constexpr size_t kBytes = 300'000;
  ASSERT_TRUE(worker.Send(1, DataMethod::kPull, PullOf(kBytes)));
  ASSERT_TRUE(worker.Send(2, DataMethod::kPush, PushOf(1)));
  shard_.AwaitHeld(1);
  connection_.lock()->Close(absl::OkStatus());
  shard_.AnswerAll();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(worker.Send(3, DataMethod::kPull, PullOf(4)));
    std::this_thread::yield();
  }
  EXPECT_EQ(worker.Await().value().data.size(), kBytes);
  EXPECT_EQ(worker.Await().value().header.call, 2);
  EXPECT_EQ(worker.Await(), std::nullopt);
}

TEST_F(TcpConnectionTest, APeerThatStaysAfterItsEnd_IsLeft) {
  RawTcpWorker worker = Join();
  connection_.lock()->Close(absl::OkStatus());
  EXPECT_EQ(worker.Await(), std::nullopt);
  clock_.Advance(TcpConnection::kFarewell);
  EXPECT_THAT(AwaitEnd(), IsOk());
}

TEST_F(TcpConnectionTest, AnAnswerAfterThePeerIsGone_ReachesNobody) {
  for (int step = 1; step <= 20; ++step) {
    {
      RawTcpWorker worker = Join();
      ASSERT_TRUE(worker.Send(1, DataMethod::kPush, PushOf(step)));
      shard_.AwaitHeld(1);
    }
    if (step % 2 == 0) {
      EXPECT_THAT(AwaitEnd(), Not(IsOk()));
    }
    shard_.AnswerAll();
  }
  ExpectServes();
}

TEST_F(TcpConnectionTest, AnAnswerAfterTheLoopIsGone_ReachesNobody) {
  RawTcpWorker worker = Join();
  ASSERT_TRUE(worker.Send(1, DataMethod::kPush, PushOf(1)));
  shard_.AwaitHeld(1);
  StopLoop();
  shard_.AnswerAll();
  EXPECT_EQ(worker.Await(), std::nullopt);
}

}  // namespace
}  // namespace muster
