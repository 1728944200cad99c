#include "worker/session/peer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/rpc/channel_settings.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr absl::Time kStart = absl::UnixEpoch();

TEST(PeerTableTest, GreetsEachPeerOnce) {
  PeerTable peers({"a:1", "b:2"});
  EXPECT_THAT(peers.TakeDue(kStart), ElementsAre(0, 1));
  EXPECT_THAT(peers.TakeDue(kStart), IsEmpty());
  peers.OnReply(0, HelloReply(), kStart);
  EXPECT_FALSE(peers.AllGreeted());
  peers.OnReply(1, HelloReply(), kStart);
  EXPECT_TRUE(peers.AllGreeted());
  EXPECT_EQ(peers.next_due(), absl::InfiniteFuture());
}

TEST(PeerTableTest, TriesAgainAfterAPauseThatGrowsToHalfASecond) {
  PeerTable peers({"a:1"});
  absl::Time now = kStart;
  absl::Duration last;
  for (int i = 0; i < 10; ++i) {
    ASSERT_THAT(peers.TakeDue(now), ElementsAre(0));
    peers.OnReply(0, absl::UnavailableError("refused"), now);
    last = peers.next_due() - now;
    now = peers.next_due();
  }
  EXPECT_EQ(last, absl::Milliseconds(500));
}

// When a ps begins to listen, gRPC has just failed to connect; then the next
// Hello finds it.
TEST(PeerTableTest, FindsAPsWithinASecondOfItsListening) {
  constexpr double kJitterOfGrpc = 1.2;
  EXPECT_LT(ChannelSettings().max_reconnect_backoff * kJitterOfGrpc +
                HelloPause(/*failures=*/100),
            absl::Seconds(1));
}

TEST(PeerTableTest, ConfirmsATakeoverAtOnceAndASecondOneAfterAPause) {
  PeerTable peers({"a:1"});
  HelloReply asks;
  asks.set_takeover(7);
  ASSERT_THAT(peers.TakeDue(kStart), ElementsAre(0));
  EXPECT_EQ(peers.takeover(0), 0);
  peers.OnReply(0, asks, kStart);
  EXPECT_FALSE(peers.AllGreeted());
  ASSERT_THAT(peers.TakeDue(kStart), ElementsAre(0));
  EXPECT_EQ(peers.takeover(0), 7);
  asks.set_takeover(8);
  peers.OnReply(0, asks, kStart);
  EXPECT_GT(peers.next_due(), kStart);
  ASSERT_THAT(peers.TakeDue(peers.next_due()), ElementsAre(0));
  EXPECT_EQ(peers.takeover(0), 8);
  // A lost answer changes nothing: it is repeatable.
  peers.OnReply(0, absl::UnavailableError("reset"), kStart);
  EXPECT_EQ(peers.takeover(0), 8);
  peers.TakeDue(peers.next_due());
  peers.OnReply(0, HelloReply(), kStart);
  EXPECT_TRUE(peers.AllGreeted());
  EXPECT_EQ(peers.takeover(0), 0);
}

TEST(PeerTableTest, NamesTheMissingWithAddressAndCause) {
  PeerTable peers({"a:1", "b:2"});
  peers.TakeDue(kStart);
  peers.OnReply(0, HelloReply(), kStart);
  peers.OnReply(
      1, absl::UnavailableError("/job:ps/task:1 at b:2: connection refused"),
      kStart);
  EXPECT_EQ(peers.DescribeMissing(),
            "/job:ps/task:1 at b:2 (connection refused)");
}

TEST(PeerTableTest, ResetGreetsAgainButNotWhileInFlight) {
  PeerTable peers({"a:1", "b:2"});
  peers.TakeDue(kStart);
  peers.OnReply(0, HelloReply(), kStart);
  peers.ResetAll();
  EXPECT_THAT(peers.TakeDue(kStart), ElementsAre(0));
}

}  // namespace
}  // namespace muster
