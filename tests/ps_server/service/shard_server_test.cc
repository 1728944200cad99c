#include "ps_server/service/shard_server.h"

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/rpc/call_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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
