// Whatever one namespace does, another's integer sums are what it pushed.
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/rpc/call_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_server.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::Each;

constexpr int kWorkers = 3;
constexpr int64_t kSteps = 60;
// Several blocks.
constexpr int64_t kElements = 2 * kBlockElements + 5;

Sender In(const std::string& space, int index, uint64_t incarnation) {
  Sender sender = MakeSender(index, incarnation);
  sender.set_namespace_(space);
  return sender;
}

class NamespaceIsolationTest : public testing::Test {
 protected:
  NamespaceIsolationTest() : server_(Options(&clock_)) {
    for (const char* space : {"good", "bad"}) Load(space, /*epoch=*/1);
  }

  static ShardServer::Options Options(const Clock* clock) {
    ShardServer::Options options;
    options.shard.incarnation = kPsIncarnation;
    options.shard.max_namespaces = 4;
    options.push_budget_bytes = 8 * kElements;
    options.apply_threads = 2;
    options.clock = clock;
    return options;
  }

  absl::Time Soon() const { return clock_.Now() + absl::Seconds(30); }

  static TensorSlice All() { return MakeSlice("w", 0, kElements); }

  void Hello(const Sender& sender) {
    uint64_t takeover = 0;
    do {
      const auto reply =
          AwaitCall(server_, kHelloCall, MakeHello(sender, takeover), Soon());
      ASSERT_THAT(reply, IsOk());
      takeover = reply->takeover();
    } while (takeover != 0);
  }

  void Load(const std::string& space, int64_t epoch) {
    const Sender chief = In(space, 0, 1);
    for (int i = 0; i < kWorkers; ++i) Hello(In(space, i, 1 + i));
    ASSERT_THAT(
        AwaitCall(server_, kDefineCall,
                  MakeDefine(chief, {MakeTensor("w", {kElements})}, epoch),
                  Soon()),
        IsOk());
    ASSERT_THAT(AwaitReply<LoadReply>([&](auto done) {
                  server_.Load(MakeLoad(chief, {All()},
                                        BytesOf(std::vector<float>(kElements)),
                                        "", epoch),
                               Soon(), done);
                }),
                IsOk());
    ASSERT_THAT(AwaitCall(server_, kSealCall, MakeSeal(chief, epoch), Soon()),
                IsOk());
  }

  absl::StatusOr<Frame<PushReply>> PushValue(const Sender& sender, int64_t step,
                                             float value) {
    const Frame<PushPart> push = MakePush(
        sender, step, {All()}, BytesOf(std::vector<float>(kElements, value)));
    for (;;) {
      auto reply = AwaitReply<Frame<PushReply>>(
          [&](auto done) { server_.Push(push, Soon(), done); });
      if (!absl::IsResourceExhausted(reply.status())) return reply;
    }
  }

  // Each worker of "good" pushes kSteps times, while `disturb` is called again
  // and again by another thread. All elements are then their number.
  void ExpectExactSumsBeside(const std::function<void()>& disturb) {
    std::atomic<bool> done = false;
    std::thread disturber([&] {
      while (!done) disturb();
    });
    std::vector<std::thread> workers;
    for (int i = 0; i < kWorkers; ++i) {
      workers.emplace_back([this, i] {
        for (int64_t step = 1; step <= kSteps; ++step) {
          EXPECT_THAT(PushValue(In("good", i, 1 + i), step, -1), IsOk());
        }
      });
    }
    for (std::thread& worker : workers) worker.join();
    done = true;
    disturber.join();
    const auto pulled = AwaitReply<Frame<PullReply>>([&](auto answer) {
      server_.Pull(MakePull(In("good", 0, 1), {All()}), Soon(), answer);
    });
    ASSERT_THAT(pulled, IsOk());
    EXPECT_THAT(ValuesOf<float>(pulled->data),
                Each(static_cast<float>(kWorkers * kSteps)));
    EXPECT_EQ(pulled->header.version(), kWorkers * kSteps);
  }

  MonotonicClock clock_;
  ShardServer server_;
};

TEST_F(NamespaceIsolationTest, OneThatFloods) {
  int64_t step = 0;
  ExpectExactSumsBeside([&] {
    ++step;
    // Not one at a time.
    std::vector<std::thread> flood;
    for (int i = 0; i < kWorkers; ++i) {
      flood.emplace_back(
          [&, i] { (void)PushValue(In("bad", i, 1 + i), step, 1); });
    }
    for (std::thread& each : flood) each.join();
  });
}

TEST_F(NamespaceIsolationTest, OneThatSendsGarbage) {
  std::mt19937_64 random(17);
  ExpectExactSumsBeside([&] {
    Frame<PushPart> push = MakePush(In("bad", 0, 1), 1, {All()}, absl::Cord());
    push.header.set_step(static_cast<int64_t>(random()));
    push.header.set_parts(static_cast<int32_t>(random()));
    push.header.mutable_slices(0)->set_offset(static_cast<int64_t>(random()));
    push.data = absl::Cord(std::string(random() % 99, 'x'));
    EXPECT_FALSE(AwaitReply<Frame<PushReply>>([&](auto done) {
                   server_.Push(push, Soon(), done);
                 }).ok());
    push.header.mutable_sender()->set_namespace_(
        std::string(1 + random() % 99, '\n'));
    EXPECT_FALSE(AwaitReply<Frame<PushReply>>([&](auto done) {
                   server_.Push(push, Soon(), done);
                 }).ok());
  });
}

TEST_F(NamespaceIsolationTest, OneThatPushesNaN) {
  ExpectExactSumsBeside([&] {
    EXPECT_THAT(
        PushValue(In("bad", 0, 1), 1, std::numeric_limits<float>::quiet_NaN()),
        StatusIs(absl::StatusCode::kInvalidArgument));
  });
}

TEST_F(NamespaceIsolationTest, OneThatIsDroppedAndComesAgain) {
  uint64_t incarnation = 100;
  ExpectExactSumsBeside([&] {
    EndNamespaceRequest end;
    end.set_namespace_("bad");
    end.set_drop(incarnation % 2 == 0);
    end.set_force(true);
    Hello(In("bad", 0, ++incarnation));
    EXPECT_THAT(AwaitCall(server_, kEndNamespaceCall, end, Soon()), IsOk());
  });
}

TEST_F(NamespaceIsolationTest, OneWhoseChiefDiesAndIsReplaced) {
  int64_t epoch = 1;
  uint64_t incarnation = 100;
  ExpectExactSumsBeside([&] {
    const Sender chief = In("bad", 0, ++incarnation);
    Hello(chief);
    EXPECT_THAT(
        AwaitCall(server_, kDefineCall,
                  MakeDefine(chief, {MakeTensor("w", {7})}, ++epoch), Soon()),
        IsOk());
  });
}

}  // namespace
}  // namespace muster
