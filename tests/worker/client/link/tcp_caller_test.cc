// The worker's end of a TCP connection, with a ps that is in this test's hands.
#include "worker/client/link/tcp_caller.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/client/link/tensor_server.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);
// More than the buffers of a socket hold.
constexpr size_t kManyBytes = kMaxPartBytes;

class Outcome {
 public:
  TcpCaller::DoneCallback Callback() {
    return [shared = shared_](absl::StatusOr<TcpCaller::Answer> result) {
      shared->result = std::move(result);
      shared->there.Notify();
    };
  }
  const absl::StatusOr<TcpCaller::Answer>& Await() const {
    shared_->there.WaitForNotification();
    return shared_->result;
  }
  absl::Status status() const { return Await().status(); }
  std::string data() const {
    EXPECT_THAT(status(), IsOk());
    return std::string(Await()->data);
  }

 private:
  struct Shared {
    absl::StatusOr<TcpCaller::Answer> result = absl::UnknownError("none");
    absl::Notification there;
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

// Memory in two pieces.
class Place : public ValuePlace {
 public:
  explicit Place(size_t size_bytes) : memory_(size_bytes, '.') {}

  absl::Span<const absl::Span<char>> PiecesFor(size_t size_bytes) override {
    if (size_bytes != memory_.size()) return {};
    const size_t half = size_bytes / 2;
    pieces_ = {absl::MakeSpan(&memory_[0], half),
               absl::MakeSpan(&memory_[half], size_bytes - half)};
    return pieces_;
  }
  bool WriteIfWanted(absl::FunctionRef<void()> write) override {
    absl::MutexLock lock(&mu_);
    if (is_given_up_) return false;
    write();
    return true;
  }

  void GiveUp() {
    absl::MutexLock lock(&mu_);
    is_given_up_ = true;
  }
  std::string memory() const {
    absl::MutexLock lock(&mu_);
    return memory_;
  }
  // Waits until its first byte has come.
  void AwaitBegin() const {
    const auto has_begun = [this] { return memory_[0] != '.'; };
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&has_begun));
  }

 private:
  mutable absl::Mutex mu_;
  bool is_given_up_ = false;
  std::string memory_;
  std::vector<absl::Span<char>> pieces_;
};

// As a channel under TLS, which two threads must not share.
class OneThreadChannel : public ByteChannel {
 public:
  explicit OneThreadChannel(std::unique_ptr<ByteChannel> channel)
      : channel_(std::move(channel)) {}

  int fd() const override { return channel_->fd(); }
  bool is_duplex() const override { return false; }
  absl::StatusOr<bool> Handshake() override { return true; }
  absl::StatusOr<size_t> Receive(absl::Span<const iovec> pieces) override {
    Check();
    return channel_->Receive(pieces);
  }
  absl::StatusOr<size_t> Send(absl::Span<const iovec> pieces) override {
    Check();
    return channel_->Send(pieces);
  }
  absl::StatusOr<bool> Flush() override {
    Check();
    return true;
  }
  bool has_received() const override { return false; }
  bool wants_to_send() const override { return false; }
  std::string PeerCertificate() const override { return ""; }

 private:
  void Check() {
    std::thread::id nobody;
    const std::thread::id self = std::this_thread::get_id();
    if (user_.compare_exchange_strong(nobody, self)) return;
    EXPECT_EQ(nobody, self);
  }

  const std::unique_ptr<ByteChannel> channel_;
  std::atomic<std::thread::id> user_{};
};

class TcpCallerTest : public testing::Test {
 protected:
  ~TcpCallerTest() override { End(); }

  void Connect(bool is_duplex = true) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ps_ =
        std::make_unique<TensorPeer>(MakePlainChannel(FileDescriptor(ends[0])));
    std::unique_ptr<ByteChannel> own =
        MakePlainChannel(FileDescriptor(ends[1]));
    if (!is_duplex) own = std::make_unique<OneThreadChannel>(std::move(own));
    caller_ = std::make_unique<TcpCaller>(PeerName{"/job:ps/task:0", "there:1"},
                                          std::move(own), *SocketLoop::Create(),
                                          &pool_, &clock_);
    runner_ = std::thread([this] {
      lost_ = caller_->Run(retirement_);
      caller_->Fail(lost_);
    });
  }
  void End() {
    if (!runner_.joinable()) return;
    caller_->Shutdown();
    runner_.join();
  }
  // Why the connection has ended, by itself.
  absl::Status AwaitLoss() {
    runner_.join();
    return lost_;
  }

  Outcome Call(const std::string& fields, const absl::Cord& data = {},
               std::shared_ptr<ValuePlace> place = nullptr,
               absl::Duration timeout = kLong) {
    Outcome outcome;
    caller_->Call({DataMethod::kPush, fields, data, std::move(place)},
                  clock_.Now() + timeout, outcome.Callback());
    return outcome;
  }
  // The number of the request that came.
  uint64_t Receive() {
    const absl::StatusOr<ReceivedFrame> frame = ps_->Receive();
    EXPECT_THAT(frame, IsOk());
    return frame.ok() ? frame->header.call : 0;
  }

  FakeClock clock_;
  BufferPool pool_;
  std::unique_ptr<TensorPeer> ps_;
  std::unique_ptr<TcpCaller> caller_;
  TcpCaller::Retirement retirement_;
  std::thread runner_;
  absl::Status lost_;
};

TEST_F(TcpCallerTest, Request_ArrivesWithAllOfIt) {
  Connect();
  const Outcome outcome = Call("fields", absl::Cord("data"));
  const absl::StatusOr<ReceivedFrame> frame = ps_->Receive();
  ASSERT_THAT(frame, IsOk());
  EXPECT_EQ(frame->header.kind, static_cast<uint32_t>(DataMethod::kPush));
  EXPECT_EQ(frame->header.timeout_ms, absl::ToInt64Milliseconds(kLong));
  EXPECT_EQ(frame->fields, "fields");
  EXPECT_EQ(std::string(frame->data()), "data");
  ps_->Answer(frame->header.call, "answer", "values");
  ASSERT_THAT(outcome.status(), IsOk());
  EXPECT_EQ(outcome.Await()->fields, "answer");
  EXPECT_EQ(outcome.data(), "values");
}

TEST_F(TcpCallerTest, AnswersOutOfOrder_ReachTheirCalls) {
  Connect();
  const Outcome first = Call("first");
  const Outcome second = Call("second");
  const uint64_t a = Receive();
  const uint64_t b = Receive();
  ps_->Answer(b, "", "to the second");
  ps_->Answer(a, "", "to the first");
  EXPECT_EQ(first.data(), "to the first");
  EXPECT_EQ(second.data(), "to the second");
}

TEST_F(TcpCallerTest, AnswerWithAPlace_LiesThere) {
  Connect();
  const auto place = std::make_shared<Place>(7);
  const Outcome outcome = Call("", {}, place);
  ps_->Answer(Receive(), "", "values!");
  ASSERT_THAT(outcome.status(), IsOk());
  EXPECT_TRUE(outcome.Await()->is_placed);
  EXPECT_EQ(outcome.data(), "");
  EXPECT_EQ(place->memory(), "values!");
}

TEST_F(TcpCallerTest, AnswerOfAnotherSizeThanItsPlace_IsReceivedElsewhere) {
  Connect();
  const auto place = std::make_shared<Place>(7);
  const Outcome outcome = Call("", {}, place);
  ps_->Answer(Receive(), "", "four");
  EXPECT_EQ(outcome.data(), "four");
  EXPECT_FALSE(outcome.Await()->is_placed);
  EXPECT_EQ(place->memory(), ".......");
}

TEST_F(TcpCallerTest, DeadlineAmidAnAnswer_NothingIsWrittenAfterwards) {
  Connect();
  const auto place = std::make_shared<Place>(100);
  const Outcome late = Call("", {}, place, absl::Seconds(1));
  const std::string answer =
      TensorPeer::AnswerBytes(Receive(), "", std::string(100, 'x'));
  const size_t sent = answer.size() - 60;
  ps_->SendBytes(answer.substr(0, sent));
  place->AwaitBegin();
  clock_.Advance(absl::Seconds(2));
  EXPECT_THAT(late.status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("/job:ps/task:0 at there:1: no answer")));
  const std::string before = place->memory();
  ps_->SendBytes(answer.substr(sent));
  // The connection goes on behind it.
  const Outcome next = Call("");
  ps_->Answer(Receive(), "", "next");
  EXPECT_EQ(next.data(), "next");
  EXPECT_EQ(place->memory(), before);
  EXPECT_EQ(place.use_count(), 1);
}

TEST_F(TcpCallerTest, AnswerAfterItsDeadline_GoesNowhere) {
  Connect();
  const auto place = std::make_shared<Place>(4);
  const Outcome late = Call("", {}, place, absl::Seconds(1));
  const uint64_t number = Receive();
  clock_.Advance(absl::Seconds(2));
  EXPECT_THAT(late.status(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  ps_->Answer(number, "", "late");
  const Outcome next = Call("");
  ps_->Answer(Receive(), "", "next");
  EXPECT_EQ(next.data(), "next");
  EXPECT_EQ(place->memory(), "....");
}

TEST_F(TcpCallerTest, PlaceGivenUp_CancelsTheCall) {
  Connect();
  const auto place = std::make_shared<Place>(4);
  const Outcome outcome = Call("", {}, place);
  place->GiveUp();
  ps_->Answer(Receive(), "", "gone");
  EXPECT_THAT(outcome.status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(place->memory(), "....");
}

TEST_F(TcpCallerTest, RefusedCall_HasThePsWords) {
  Connect();
  const Outcome outcome = Call("");
  ps_->Refuse(Receive(), absl::FailedPreconditionError("fenced: so"));
  EXPECT_EQ(outcome.status(), absl::FailedPreconditionError("fenced: so"));
}

TEST_F(TcpCallerTest, AnswerToNoCall_EndsTheConnection) {
  Connect();
  const Outcome outcome = Call("");
  ps_->Answer(Receive() + 1, "");
  EXPECT_THAT(outcome.status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("answer to call 2 with status 0 makes no "
                                 "sense")));
  EXPECT_THAT(AwaitLoss(), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(TcpCallerTest, ConnectionLost_FailsAllCallsAndThoseToCome) {
  Connect();
  const Outcome first = Call("");
  const Outcome second = Call("");
  const std::string half =
      TensorPeer::AnswerBytes(Receive(), "fields", "data").substr(0, 40);
  ps_->SendBytes(half);
  ps_.reset();
  for (const Outcome& outcome : {first, second, Call("after")}) {
    EXPECT_THAT(outcome.status(),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr("/job:ps/task:0 at there:1: ")));
  }
  EXPECT_THAT(AwaitLoss(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(TcpCallerTest, RequestThatIsNotTakenInTime_EndsTheConnection) {
  Connect();
  std::atomic<int> held = 0;
  const std::string bytes(kManyBytes, 'x');
  std::vector<Outcome> outcomes;
  for (int i = 0; i < 4; ++i) {
    ++held;
    outcomes.push_back(
        Call("", absl::MakeCordFromExternal(bytes, [&held] { --held; }),
             nullptr, absl::Seconds(1)));
  }
  clock_.Advance(absl::Seconds(2));
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.status(),
                StatusIs(absl::StatusCode::kDeadlineExceeded));
  }
  clock_.Advance(TcpCaller::kStuck);
  EXPECT_THAT(AwaitLoss(), StatusIs(absl::StatusCode::kUnavailable,
                                    HasSubstr("not be sent in time")));
  caller_.reset();
  EXPECT_EQ(held, 0);
}

TEST_F(TcpCallerTest, RequestsOfASlowPeerPastTheirDeadline_AreNotSent) {
  Connect();
  const std::string bytes(kManyBytes, 'x');
  std::vector<Outcome> outcomes;
  for (const char* fields : {"first", "second", "third"}) {
    outcomes.push_back(
        Call(fields, absl::Cord(bytes), nullptr, absl::Seconds(1)));
  }
  clock_.Advance(absl::Seconds(2));
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.status(),
                StatusIs(absl::StatusCode::kDeadlineExceeded));
  }
  const Outcome next = Call("next");
  // What was being sent is sent to its end.
  EXPECT_EQ(ps_->Receive()->fields, "first");
  const absl::StatusOr<ReceivedFrame> frame = ps_->Receive();
  ASSERT_THAT(frame, IsOk());
  EXPECT_EQ(frame->fields, "next");
  ps_->Answer(frame->header.call, "", "");
  EXPECT_THAT(next.status(), IsOk());
}

TEST_F(TcpCallerTest, Retired_EndsWhenTheLastCallIsAnswered) {
  absl::Notification retired;
  retirement_.at = clock_.Now() + absl::Seconds(1);
  retirement_.on_retire = [&retired] { retired.Notify(); };
  Connect();
  const Outcome outcome = Call("last");
  const uint64_t call = Receive();
  clock_.Advance(absl::Seconds(2));
  retired.WaitForNotification();
  ps_->Answer(call, "", "values");
  EXPECT_EQ(outcome.data(), "values");
  EXPECT_THAT(AwaitLoss(), IsOk());
}

TEST_F(TcpCallerTest, DeadlineThatHasPassed_SendsNothing) {
  Connect();
  EXPECT_THAT(Call("late", {}, nullptr, absl::ZeroDuration()).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  const Outcome next = Call("next");
  EXPECT_EQ(ps_->Receive()->fields, "next");
}

TEST_F(TcpCallerTest, RequestThatNoFrameHolds_IsRefusedAtOnce) {
  Connect();
  EXPECT_THAT(Call(std::string(kMaxHeaderBytes + 1, 'x')).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      Call("", absl::Cord(std::string(kMaxPartBytes + 1, 'x'))).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("a frame takes at most")));
}

class TcpCallerLoadTest : public TcpCallerTest,
                          public testing::WithParamInterface<bool> {};

TEST_P(TcpCallerLoadTest, ManyThreads_EachGetsItsAnswers) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 40;
  Connect(/*is_duplex=*/GetParam());
  std::thread echo([this] {
    for (int i = 0; i < kThreads * kCalls; ++i) {
      const absl::StatusOr<ReceivedFrame> frame = ps_->Receive();
      ASSERT_THAT(frame, IsOk());
      ps_->Answer(frame->header.call, frame->fields,
                  std::string(frame->data()));
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < kCalls; ++i) {
        const std::string text = absl::StrCat(t, " ", i);
        const std::string data(kManyBytes / 16, static_cast<char>('a' + t));
        const Outcome outcome = Call(text, absl::Cord(data));
        ASSERT_THAT(outcome.status(), IsOk());
        EXPECT_EQ(outcome.Await()->fields, text);
        EXPECT_EQ(outcome.data(), data);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  echo.join();
}

INSTANTIATE_TEST_SUITE_P(Channels, TcpCallerLoadTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& param) {
                           return param.param ? "Duplex" : "OneThread";
                         });

}  // namespace
}  // namespace muster
