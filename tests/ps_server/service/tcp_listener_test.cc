// The ps's listener for TCP connections: whom it lets in, and the shard's calls
// over them.
#include "ps_server/service/tcp_listener.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/rpc/call_table.h"
#include "common/rpc/frame/data_method.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/caller/caller.h"
#include "ps_server/service/entrance.h"
#include "ps_server/service/shard_server.h"
#include "tests/ps_server/service/raw_tcp_worker.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// Does something when it is first read.
class MeddlingClock : public MonotonicClock {
 public:
  absl::Time Now() const override {
    if (!std::exchange(has_meddled_, true)) meddle();
    return MonotonicClock::Now();
  }

  std::function<void()> meddle;

 private:
  mutable bool has_meddled_ = false;
};

// Whose certificates are all of one task.
class EntranceOfOne : public Entrance {
 public:
  explicit EntranceOfOne(Caller holder)
      : Entrance(Options()), holder_(std::move(holder)) {}

  Caller IdentifyHolder(absl::string_view) const override { return holder_; }

 private:
  const Caller holder_;
};

ShardServer::Options ShardOptionsWith(const Clock* clock) {
  ShardServer::Options options;
  options.shard.incarnation = kPsIncarnation;
  options.clock = clock;
  return options;
}

// Bytes of a push to a shard without a model: it is fenced.
std::string FencedPush() {
  return MakePush(MakeSender(0, 100), 1, {}, absl::Cord())
      .header.SerializeAsString();
}

class TcpListenerTest : public testing::Test {
 protected:
  TcpListenerTest() : shard_(ShardOptionsWith(&clock_)) { Start({}); }

  void Start(TcpListener::Options options) {
    if (options.shard == nullptr) options.shard = &shard_;
    options.clock = &clock_;
    options.loops = 1;
    options.open = [](FileDescriptor socket) {
      return MakePlainChannel(std::move(socket));
    };
    options.reporter = lines_.reporter();
    auto listener = TcpListener::Start(std::move(options));
    ASSERT_THAT(listener, IsOk());
    listener_ = *std::move(listener);
  }

  RawTcpWorker Connect() {
    LoopbackPair pair = ConnectLoopback();
    listener_->Accept(std::move(pair.ps));
    return RawTcpWorker(std::move(pair.worker));
  }
  std::string Offer() { return listener_->OfferTo(caller_).value().token(); }
  // The answer to a token.
  absl::Status Show(const std::string& token) {
    RawTcpWorker worker = Connect();
    EXPECT_TRUE(worker.Greet(token));
    return worker.AwaitStatus();
  }
  RawTcpWorker Join() {
    RawTcpWorker worker = Connect();
    EXPECT_TRUE(worker.Greet(Offer()));
    EXPECT_THAT(worker.AwaitStatus(), IsOk());
    return worker;
  }
  void ExpectServes() {
    RawTcpWorker worker = Join();
    ASSERT_TRUE(worker.Send(1, DataMethod::kPush, FencedPush()));
    EXPECT_THAT(
        worker.AwaitStatus(),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("fenced: ")));
  }

  MonotonicClock clock_;
  ReportedLines lines_;
  Caller caller_;
  ShardServer shard_;
  std::unique_ptr<TcpListener> listener_;
};

// ---- Whom it lets in ----------------------------------------------------

TEST_F(TcpListenerTest, AStrangersToken_GetsNothing) {
  EXPECT_THAT(Show(std::string(kTensorTokenBytes, '0')),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("does not know this offer")));
  EXPECT_THAT(lines_.lines(),
              Contains(HasSubstr("tcp: a connection was turned away")));
  ExpectServes();
}

TEST_F(TcpListenerTest, ATokenIsForOnce) {
  const std::string token = Offer();
  RawTcpWorker first = Connect();
  ASSERT_TRUE(first.Greet(token));
  EXPECT_THAT(first.AwaitStatus(), IsOk());
  EXPECT_THAT(Show(token), StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_TRUE(first.Send(1, DataMethod::kPush, FencedPush()));
  EXPECT_THAT(first.AwaitStatus(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(TcpListenerTest, ATokenOfAnotherTask_IsRefused) {
  const EntranceOfOne entrance({Role::kWorker, TaskKey("worker", 1)});
  TcpListener::Options options;
  options.entrance = &entrance;
  Start(std::move(options));
  for (const Caller& other :
       {Caller{Role::kWorker, TaskKey("worker", 2)},
        Caller{Role::kChief, TaskKey("worker", 1)}, Caller()}) {
    caller_ = other;
    EXPECT_THAT(Show(Offer()), StatusIs(absl::StatusCode::kPermissionDenied,
                                        HasSubstr("is of /job:worker/task:1")));
  }
  caller_ = {Role::kWorker, TaskKey("worker", 1)};
  EXPECT_THAT(Show(Offer()), IsOk());
}

TEST_F(TcpListenerTest, ACallOfACertificateThatHasEnded_IsRefused) {
  Caller holder = {Role::kWorker, TaskKey("worker", 1)};
  caller_ = holder;
  holder.valid_until = absl::InfinitePast();
  const EntranceOfOne entrance(holder);
  TcpListener::Options options;
  options.entrance = &entrance;
  Start(std::move(options));
  RawTcpWorker worker = Join();
  ASSERT_TRUE(worker.Send(1, DataMethod::kPush, FencedPush()));
  EXPECT_THAT(worker.AwaitStatus(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("has ended")));
}

TEST_F(TcpListenerTest, ConnectionsTooMany_AreTurnedAway) {
  TcpListener::Options options;
  options.max_connections = 2;
  Start(std::move(options));
  std::optional<RawTcpWorker> first = Join();
  const RawTcpWorker second = Join();
  EXPECT_EQ(listener_->connections(), 2);
  EXPECT_THAT(Show(Offer()), StatusIs(absl::StatusCode::kResourceExhausted,
                                      HasSubstr("serves 2 TCP connections")));
  first.reset();
  const absl::Time give_up = clock_.Now() + absl::Seconds(60);
  while (listener_->connections() > 1 && clock_.Now() < give_up) {
    std::this_thread::yield();
  }
  ExpectServes();
}

TEST_F(TcpListenerTest, IdleStrangers_ShutNobodyOut) {
  std::vector<RawTcpWorker> idle;
  while (idle.size() < TcpListener::kMostGreeting + 20) {
    idle.push_back(Connect());
  }
  EXPECT_EQ(idle.front().Await(), std::nullopt) << "the oldest is hung up on";
  lines_.Await(1);
  EXPECT_THAT(lines_.lines(), Contains(HasSubstr("have shown no token")));
  ExpectServes();
}

// ---- The shard's calls --------------------------------------------------

// The requests of a small training, each of which `call` makes.
class Training {
 public:
  struct Result {
    absl::Status status;
    std::string fields;
    std::string data;

    bool operator==(const Result& other) const {
      return status == other.status && fields == other.fields &&
             data == other.data;
    }
  };
  using Call = std::function<Result(DataMethod, const std::string& fields,
                                    const std::string& data)>;

  Training(ShardServer* shard, Call call)
      : shard_(*shard), call_(std::move(call)) {}

  std::vector<Result> Run() {
    const std::vector<TensorSlice> slices = {MakeSlice("w", 0, kElements)};
    Make(kHelloCall, MakeHello(chief_));
    Make(kDefineCall, MakeDefine(chief_, {MakeTensor("w", {kElements})}));
    Send(DataMethod::kLoad, MakeLoad(chief_, slices, Values(1)));
    Make(kSealCall, MakeSeal(chief_));
    for (int step = 1; step <= 3; ++step) {
      Frame<PushPart> push = MakePush(chief_, step, slices, Values(0.25f));
      push.header.set_wants_values(step != 2);
      Send(DataMethod::kPush, push);
      // A duplicate, whose values are the newest.
      Send(DataMethod::kPush, push);
    }
    Send(DataMethod::kPull,
         Frame<PullRequest>{MakePull(chief_, slices), absl::Cord()});
    BeginSnapshotRequest begin;
    *begin.mutable_sender() = chief_;
    *begin.mutable_fence() = MakeFence();
    const BeginSnapshotReply begun = Make(kBeginSnapshotCall, begin);
    ReadSnapshotRequest read = MakeRead(chief_, begun.snapshot(), slices[0]);
    // Its number is random.
    Send(DataMethod::kReadSnapshot,
         Frame<ReadSnapshotRequest>{read, absl::Cord()});
    return results_;
  }

 private:
  static constexpr int64_t kElements = kBlockElements + 77;

  static absl::Cord Values(float scale) {
    std::vector<float> values(kElements);
    for (int64_t i = 0; i < kElements; ++i) {
      values[i] = scale * static_cast<float>(i % 1000) / 3;
    }
    return BytesOf(values);
  }

  template <typename M>
  typename M::Reply Make(const M& row, const typename M::Request& request) {
    const auto reply = AwaitCall(shard_, row, request, absl::InfiniteFuture());
    EXPECT_THAT(reply, IsOk());
    return reply.value();
  }
  template <typename Header>
  void Send(DataMethod method, const Frame<Header>& request) {
    results_.push_back(call_(method, request.header.SerializeAsString(),
                             std::string(request.data)));
    EXPECT_THAT(results_.back().status, IsOk());
  }

  const Sender chief_ = MakeSender(0, 100);
  ShardServer& shard_;
  const Call call_;
  std::vector<Result> results_;
};

// The same call without a wire.
class InProcess {
 public:
  explicit InProcess(ShardServer* shard) : shard_(*shard) {}

  Training::Result operator()(DataMethod method, const std::string& fields,
                              const std::string& data) {
    const absl::Time never = absl::InfiniteFuture();
    switch (method) {
      case DataMethod::kLoad: {
        const auto reply = AwaitReply<LoadReply>([&](auto done) {
          shard_.Load(FrameOf<LoadPart>(fields, data), never, done);
        });
        return {reply.status(), reply->SerializeAsString(), ""};
      }
      case DataMethod::kPull:
        return ResultOf(AwaitReply<Frame<PullReply>>([&](auto done) {
          shard_.Pull(FrameOf<PullRequest>(fields, data).header, never, done);
        }));
      case DataMethod::kPush:
        return ResultOf(AwaitReply<Frame<PushReply>>([&](auto done) {
          shard_.Push(FrameOf<PushPart>(fields, data), never, done);
        }));
      case DataMethod::kPullRows:
        return ResultOf(AwaitReply<Frame<PullRowsReply>>([&](auto done) {
          shard_.PullRows(FrameOf<PullRowsRequest>(fields, data), never, done);
        }));
      case DataMethod::kReadSnapshot:
        return ResultOf(AwaitReply<Frame<SnapshotPart>>([&](auto done) {
          shard_.ReadSnapshot(FrameOf<ReadSnapshotRequest>(fields, data).header,
                              never, done);
        }));
    }
    return {};
  }

 private:
  template <typename Header>
  static Frame<Header> FrameOf(const std::string& fields,
                               const std::string& data) {
    Frame<Header> frame;
    EXPECT_TRUE(frame.header.ParseFromString(fields));
    frame.data = absl::Cord(data);
    return frame;
  }
  template <typename Header>
  static Training::Result ResultOf(const absl::StatusOr<Frame<Header>>& reply) {
    if (!reply.ok()) return {reply.status(), "", ""};
    return {absl::OkStatus(), reply->header.SerializeAsString(),
            std::string(reply->data)};
  }

  ShardServer& shard_;
};

TEST_F(TcpListenerTest, EveryCall_IsAsWithinTheProcess) {
  RawTcpWorker worker = Join();
  uint64_t calls = 0;
  const std::vector<Training::Result> over_tcp =
      Training(&shard_,
               [&](DataMethod method, const std::string& fields,
                   const std::string& data) -> Training::Result {
                 EXPECT_TRUE(worker.Send(++calls, method, fields, data));
                 const std::optional<RawTcpWorker::Answer> answer =
                     worker.Await();
                 if (!answer.has_value())
                   return {absl::CancelledError("EOF"), "", ""};
                 EXPECT_EQ(answer->header.call, calls);
                 return {answer->status, answer->fields, answer->data};
               })
          .Run();
  ShardServer other(ShardOptionsWith(&clock_));
  const std::vector<Training::Result> within =
      Training(&other, InProcess(&other)).Run();
  ASSERT_EQ(over_tcp.size(), within.size());
  for (size_t i = 0; i < within.size(); ++i) {
    EXPECT_TRUE(over_tcp[i] == within[i]) << "call " << i;
  }
  EXPECT_GT(within[1].data.size(), 0) << "the values of the first push";
}

// The loop's thread carries out a request after which others never stop.
TEST_F(TcpListenerTest, TwoOnOneLoop_AreServedAmongOthersWhoNeverStop) {
  constexpr int64_t kNever = 2'000'000;
  // Read by the shard in the first request's turn.
  MeddlingClock clock;
  ShardServer shard(ShardOptionsWith(&clock));
  std::atomic<bool> is_served = false;
  int64_t asked = 0;
  const std::function<void(const absl::StatusOr<ShardState>&)> ask =
      [&](const absl::StatusOr<ShardState>&) {
        if (is_served || asked == kNever) return;
        ++asked;
        shard.Call(kStateCall, {}, absl::InfiniteFuture(), ask);
      };
  clock.meddle = [&ask] { ask(ShardState()); };
  TcpListener::Options options;
  options.shard = &shard;
  Start(std::move(options));
  RawTcpWorker one = Join();
  RawTcpWorker two = Join();
  ASSERT_TRUE(one.Send(1, DataMethod::kPush, FencedPush()));
  EXPECT_TRUE(one.Await().has_value());
  for (RawTcpWorker* const worker : {&two, &one, &two}) {
    ASSERT_TRUE(worker->Send(2, DataMethod::kPush, FencedPush()));
    EXPECT_TRUE(worker->Await().has_value());
  }
  EXPECT_FALSE(is_served);
  is_served = true;
  listener_.reset();
  EXPECT_GT(asked, 0);
  EXPECT_LT(asked, kNever);
}

// ---- The end ------------------------------------------------------------

TEST_F(TcpListenerTest, ItsEndHangsUp) {
  RawTcpWorker worker = Join();
  RawTcpWorker idle = Connect();
  listener_.reset();
  EXPECT_EQ(worker.Await(), std::nullopt);
  EXPECT_EQ(idle.Await(), std::nullopt);
}

TEST_F(TcpListenerTest, ItsEnd_AnswersWhatWasRead) {
  RawTcpWorker worker = Join();
  for (int call = 1; call <= 8; ++call) {
    ASSERT_TRUE(worker.Send(call, DataMethod::kPush, FencedPush()));
  }
  ASSERT_TRUE(worker.Await().has_value());
  listener_.reset();
  int answers = 1;
  while (worker.Await().has_value()) ++answers;
  EXPECT_GE(answers, 1);
  shard_.Close();
}

}  // namespace
}  // namespace muster
