#include "ps_server/service/shard_server.h"

#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/rpc/call_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/ps_server/shard/sync_shard.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(ShardServerTest, SaysOnceThatAStartOfATaskReplacedAnother) {
  const MonotonicClock clock{};
  ReportedLines lines;
  ShardServer::Options options;
  options.shard.incarnation = kPsIncarnation;
  options.clock = &clock;
  options.reporter = lines.reporter();
  ShardServer server(options);
  const auto hello = [&](uint64_t incarnation, uint64_t takeover) {
    const absl::StatusOr<HelloReply> reply =
        AwaitReply<HelloReply>([&](auto done) {
          server.Call(kHelloCall,
                      MakeHello(MakeSender(1, incarnation), takeover),
                      clock.Now() + absl::Seconds(30), done);
        });
    EXPECT_THAT(reply, IsOk());
    return reply->takeover();
  };
  hello(0x65, 0);
  const uint64_t takeover = hello(0xabc, 0);
  EXPECT_THAT(lines.lines(), IsEmpty()) << "nothing has changed";
  for (int i = 0; i < 2; ++i) hello(0xabc, takeover);
  EXPECT_THAT(lines.lines(),
              ElementsAre("I /job:worker/task:1 was started anew: incarnation "
                          "abc replaces 65"));
}

// A server of a model in sync, of whose workers each has pushed step 1 with its
// factor of the learning rate.
class ShardServerRatesTest : public testing::Test {
 protected:
  ShardServerRatesTest() {
    ShardServer::Options options;
    options.shard.incarnation = kPsIncarnation;
    options.clock = &clock_;
    options.reporter = lines_.reporter();
    server_ = std::make_unique<ShardServer>(options);
    for (const Sender& sender : {chief_, a_, b_}) {
      server_->Call(kHelloCall, MakeHello(sender), Soon(), [](const auto&) {});
    }
    server_->Call(kDefineCall, SyncShard::MakeSyncModel(), Soon(),
                  [](const auto&) {});
    server_->Load(MakeLoad(chief_, SyncShard::AllSlices(),
                           BytesOf(std::vector<float>(kModel, 1.0F))),
                  Soon(), [](const auto&) {});
    server_->Call(kSealCall, MakeSeal(chief_), Soon(), [](const auto&) {});
  }

  absl::Time Soon() const { return clock_.Now() + absl::Seconds(30); }

  void Pull(const StepToken& token) {
    PullRequest request = MakePull(a_, SyncShard::AllSlices());
    *request.mutable_token() = token;
    server_->Pull(request, Soon(),
                  [](const auto& reply) { EXPECT_THAT(reply, IsOk()); });
  }

  void Push(const Sender& sender, int64_t step, int64_t round, double factor) {
    for (const auto part : {SyncShard::kFirstBlock, SyncShard::kSecondBlock,
                            SyncShard::kAverage}) {
      Frame<PushPart> push = parts_.MakePart(
          sender, step, round, std::vector<float>(kModel, -2), part);
      push.header.set_pulled_version(round - 1);
      push.header.set_learning_rate_factor(factor);
      server_->Push(push, Soon(),
                    [](const auto& reply) { EXPECT_THAT(reply, IsOk()); });
    }
  }

  void PushBoth(int64_t step, double factor_of_a, double factor_of_b) {
    Push(a_, step, step, factor_of_a);
    Push(b_, step, step, factor_of_b);
    Pull(MakeToken(step + 1, {MakeChosen(b_, step), MakeChosen(a_, step)}));
  }

  const MonotonicClock clock_{};
  ReportedLines lines_;
  std::unique_ptr<ShardServer> server_;
  SyncShard parts_{SyncShard::MakeSyncModel()};
  const Sender chief_ = MakeSender(0, 100);
  const Sender a_ = MakeSender(1, 101);
  const Sender b_ = MakeSender(2, 102);
};

TEST_F(ShardServerRatesTest, WorkersOfOneRate_AreNotSaid) {
  Pull(MakeToken(1));
  PushBoth(1, 0.5, 0.5);
  EXPECT_THAT(lines_.lines(), IsEmpty());
}

TEST_F(ShardServerRatesTest, WorkersOfOtherRates_AreSaidOnceWithBoth) {
  Pull(MakeToken(1));
  PushBoth(1, 0.5, 0.25);
  PushBoth(2, 0.5, 0.125);
  EXPECT_THAT(lines_.lines(),
              ElementsAre(AllOf(
                  StartsWith("W update 1: the workers' learning rates differ"),
                  HasSubstr("/job:worker/task:1 has 0.5 times"),
                  HasSubstr("/job:worker/task:2 0.25 times"))));
}

TEST(ShardServerTest, TheLastRequestIsOfWhoTrains_NotOfViewers) {
  FakeClock clock;
  ShardServer::Options options;
  options.shard.incarnation = kPsIncarnation;
  options.clock = &clock;
  ShardServer server(options);
  clock.Advance(absl::Seconds(1));
  server.Call(kStateCall, {}, absl::InfiniteFuture(), [](const auto&) {});
  EXPECT_EQ(server.last_request(), absl::InfinitePast());
  server.Call(kHelloCall, MakeHello(MakeSender(1, 5)), absl::InfiniteFuture(),
              [](const auto&) {});
  EXPECT_EQ(server.last_request(), clock.Now());
  clock.Advance(absl::Seconds(1));
  server.Push(MakePush(MakeSender(1, 5), 1, {}, absl::Cord()),
              absl::InfiniteFuture(), [](const auto&) {});
  EXPECT_EQ(server.last_request(), clock.Now());
}

TEST(ShardServerTest, NamespacesTakeTurns) {
  const MonotonicClock clock{};
  ShardServer::Options options;
  options.shard.max_namespaces = 2;
  options.clock = &clock;
  ShardServer server(options);
  const absl::Time soon = clock.Now() + absl::Seconds(30);
  std::vector<std::string> order;
  const auto pull = [&](const std::string& space) {
    Sender sender = MakeSender(0, 5);
    sender.set_namespace_(space);
    server.Pull(MakePull(sender, {MakeSlice("w", 0, kBlockElements)}), soon,
                [&order, space](const auto&) { order.push_back(space); });
  };
  // While this one has its turn, the others come.
  server.Call(kStateCall, {}, soon, [&](const auto&) {
    for (int i = 0; i < 3; ++i) pull("a");
    for (int i = 0; i < 3; ++i) pull("b");
  });
  EXPECT_THAT(order, ElementsAre("a", "b", "a", "b", "a", "b"));
}

}  // namespace
}  // namespace muster
