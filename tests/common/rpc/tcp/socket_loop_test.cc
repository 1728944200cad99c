#include "common/rpc/tcp/socket_loop.h"

#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using Interest = SocketHandler::Interest;

// One end of a connection whose other end is the test's.
class TestHandler : public SocketHandler {
 public:
  explicit TestHandler(std::function<Interest()> proceed)
      : proceed_(std::move(proceed)) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    socket_ = FileDescriptor(ends[0]);
    peer = FileDescriptor(ends[1]);
  }

  int fd() const override { return socket_.get(); }
  Interest Proceed() override {
    ++turns;
    return proceed_();
  }

  std::atomic<int> turns{0};
  FileDescriptor peer;

 private:
  FileDescriptor socket_;
  const std::function<Interest()> proceed_;
};

Interest Idle() { return {}; }
Interest End() {
  Interest interest;
  interest.ended = true;
  return interest;
}
Interest Receive() {
  Interest interest;
  interest.receive = true;
  return interest;
}

class SocketLoopTest : public testing::Test {
 protected:
  std::shared_ptr<TestHandler> Add(std::function<Interest()> proceed) {
    auto handler = std::make_shared<TestHandler>(std::move(proceed));
    loop_->Add(handler);
    return handler;
  }
  // Turns up to here do not count: those of Add and of the first tick.
  void Settle() {
    loop_->RunOnce(absl::ZeroDuration());
    loop_->RunOnce(absl::ZeroDuration());
  }

  const std::unique_ptr<SocketLoop> loop_ = *SocketLoop::Create();
};

TEST_F(SocketLoopTest, AddedHandler_ProceedsUntilItEnds) {
  int turns = 0;
  std::weak_ptr<TestHandler> handler = Add([&] {
    Interest interest;
    interest.again = ++turns < 3;
    interest.ended = turns == 3;
    return interest;
  });
  EXPECT_EQ(loop_->size(), 1);
  for (int i = 1; i <= 3; ++i) {
    loop_->RunOnce(SocketLoop::kTick);
    EXPECT_EQ(turns, i);
  }
  EXPECT_EQ(loop_->size(), 0);
  EXPECT_TRUE(handler.expired());
}

TEST_F(SocketLoopTest, BytesOrRoom_GiveATurnToWhoWaitsForThem) {
  Interest interest;
  const auto handler = Add([&] { return interest; });
  Settle();
  const int before = handler->turns;
  send(handler->peer.get(), "x", 1, 0);
  loop_->RunOnce(absl::ZeroDuration());
  EXPECT_EQ(handler->turns, before) << "it waits for nothing";
  interest = Receive();
  loop_->Wake(handler.get());
  loop_->RunOnce(absl::ZeroDuration());
  loop_->RunOnce(absl::ZeroDuration());
  EXPECT_EQ(handler->turns, before + 2);
  interest.receive = false;
  interest.send = true;
  loop_->RunOnce(absl::ZeroDuration());
  loop_->RunOnce(absl::ZeroDuration());
  EXPECT_EQ(handler->turns, before + 4);
}

// Else a connection that is held back would take a whole core when its peer
// is gone.
TEST_F(SocketLoopTest, ClosedPeerOfWhoWaitsForNothing_GivesNoTurn) {
  const auto handler = Add(&Idle);
  Settle();
  handler->peer = FileDescriptor();
  const int before = handler->turns;
  loop_->RunOnce(absl::ZeroDuration());
  loop_->RunOnce(absl::ZeroDuration());
  EXPECT_EQ(handler->turns, before);
}

TEST_F(SocketLoopTest, WokenOften_HasOneTurn) {
  const auto handler = Add(&Idle);
  Settle();
  const int before = handler->turns;
  for (int i = 0; i < 10; ++i) loop_->Wake(handler.get());
  loop_->RunOnce(absl::ZeroDuration());
  loop_->RunOnce(absl::ZeroDuration());
  EXPECT_EQ(handler->turns, before + 1);
}

TEST_F(SocketLoopTest, Tick_GivesATurnToAll) {
  const auto handler = Add(&Idle);
  Settle();
  const int before = handler->turns;
  const absl::Time begin = SystemClock()->Now();
  while (handler->turns == before) loop_->RunOnce(absl::InfiniteDuration());
  EXPECT_LT(SystemClock()->Now() - begin, absl::Seconds(30));
}

TEST_F(SocketLoopTest, PatienceBelowZero_DoesNotWait) {
  Settle();
  loop_->RunOnce(-absl::Seconds(1));
}

TEST_F(SocketLoopTest, WokenAfterItsEnd_NothingHappens) {
  const auto handler = Add(&End);
  loop_->RunOnce(absl::ZeroDuration());
  EXPECT_EQ(handler->turns, 1);
  loop_->Wake(handler.get());
  loop_->RunOnce(absl::ZeroDuration());
  EXPECT_EQ(handler->turns, 1);
}

// A handler waits in its turn for what another one does in its own.
TEST_F(SocketLoopTest, ReenteredRun_GoesOnWithTheOtherWokenOnes) {
  std::vector<std::shared_ptr<TestHandler>> handlers;
  int inside = 0, ended = 0;
  for (int i = 0; i < 3; ++i) {
    handlers.push_back(Add([&] {
      // The first to have a turn lets all others have theirs.
      if (++inside == 1) {
        for (int n = 0; n < 3 && ended < 2; ++n) {
          loop_->RunOnce(absl::ZeroDuration());
        }
        EXPECT_EQ(ended, 2);
      }
      ++ended;
      return End();
    }));
  }
  loop_->RunOnce(absl::ZeroDuration());
  EXPECT_EQ(ended, 3);
  EXPECT_EQ(loop_->size(), 0);
}

TEST_F(SocketLoopTest, HandlerThatEndsInAReenteredTurn_StaysEnded) {
  TestHandler* self = nullptr;
  int depth = 0;
  std::weak_ptr<TestHandler> handler;
  bool was_alive = false;
  const auto proceed = [&] {
    if (++depth == 2) return End();
    loop_->Wake(self);
    loop_->RunOnce(absl::ZeroDuration());
    EXPECT_EQ(loop_->size(), 0);
    was_alive = !handler.expired();
    return Receive();
  };
  {
    auto made = std::make_shared<TestHandler>(proceed);
    self = made.get();
    handler = made;
    loop_->Add(std::move(made));
  }
  loop_->RunOnce(absl::ZeroDuration());
  EXPECT_EQ(depth, 2);
  EXPECT_TRUE(was_alive) << "it went while it had its turn";
  EXPECT_TRUE(handler.expired());
}

TEST_F(SocketLoopTest, ManyReadyHandlers_AllHaveTurns) {
  std::vector<std::shared_ptr<TestHandler>> handlers;
  for (int i = 0; i < 200; ++i) {
    handlers.push_back(Add([] { return Receive(); }));
  }
  Settle();
  std::vector<std::pair<TestHandler*, int>> before;
  for (const auto& handler : handlers) {
    send(handler->peer.get(), "x", 1, 0);
    before.emplace_back(handler.get(), handler->turns);
  }
  for (int i = 0; i < 10; ++i) loop_->RunOnce(absl::ZeroDuration());
  for (const auto& [handler, turns] : before) EXPECT_GT(handler->turns, turns);
}

TEST_F(SocketLoopTest, Stop_EndsRunAndLetsGoOfHandlers) {
  std::weak_ptr<TestHandler> handler = Add(&Idle);
  std::thread runner([&] { loop_->Run(); });
  loop_->Stop();
  runner.join();
  EXPECT_EQ(loop_->size(), 0);
  EXPECT_TRUE(handler.expired());
  loop_->Run();  // It is stopped for good.
}

TEST_F(SocketLoopTest, WakesOfOtherThreads_NoneIsLost) {
  constexpr int kThreads = 3, kWakes = 3000;
  struct Counters {
    std::atomic<int> asked{0}, seen{0};
  };
  std::vector<Counters> counters(kThreads);
  std::vector<std::shared_ptr<TestHandler>> handlers;
  for (Counters& counter : counters) {
    handlers.push_back(Add([&counter] {
      counter.seen = counter.asked.load();
      return Idle();
    }));
  }
  std::thread runner([&] { loop_->Run(); });
  const absl::Time begin = SystemClock()->Now();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 1; i <= kWakes; ++i) {
        counters[t].asked = i;
        loop_->Wake(handlers[t].get());
        while (counters[t].seen < i) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // A lost one would be seen at the next tick only.
  EXPECT_LT(SystemClock()->Now() - begin, kWakes / 4 * SocketLoop::kTick);
  loop_->Stop();
  runner.join();
}

// Handlers come from other threads, and end at once.
TEST_F(SocketLoopTest, AddedWhileItRuns_EachEnds) {
  constexpr int kThreads = 3, kHandlers = 300;
  std::atomic<int> ended{0};
  std::thread runner([&] { loop_->Run(); });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kHandlers; ++i) {
        Add([&] {
          ++ended;
          return End();
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (loop_->size() > 0) std::this_thread::yield();
  loop_->Stop();
  runner.join();
  EXPECT_EQ(ended, kThreads * kHandlers);
}

}  // namespace
}  // namespace muster
