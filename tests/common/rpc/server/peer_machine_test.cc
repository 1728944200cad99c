#include "common/rpc/server/peer_machine.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(PeerMachineTest, LoopbackInEveryForm_IsThisMachine) {
  EXPECT_TRUE(IsPeerOfThisMachine("ipv4:127.0.0.1:40312"));
  EXPECT_TRUE(IsPeerOfThisMachine("ipv4:127.3.2.1:1"));
  EXPECT_TRUE(IsPeerOfThisMachine("ipv6:%5B::1%5D:40312"));
  EXPECT_TRUE(IsPeerOfThisMachine("ipv6:[::1]:40312"));
  EXPECT_TRUE(IsPeerOfThisMachine("ipv6:[::ffff:127.0.0.1]:40312"));
  EXPECT_TRUE(IsPeerOfThisMachine("unix:"));
  EXPECT_TRUE(IsPeerOfThisMachine("inproc"));
}

// Of the blocks for documentation, which no machine has.
TEST(PeerMachineTest, AddressesOfOthers_AreNot) {
  EXPECT_FALSE(IsPeerOfThisMachine("ipv4:192.0.2.7:40312"));
  EXPECT_FALSE(IsPeerOfThisMachine("ipv6:%5B2001:db8::1%5D:40312"));
  EXPECT_FALSE(IsPeerOfThisMachine("ipv6:%5B2001:db8::1%25eth0%5D:40312"));
}

TEST(PeerMachineTest, NamesOfNoForm_AreNot) {
  for (const char* const peer : {"", "ipv4:", "ipv4:127.0.0.1.example:1",
                                 "dns:localhost:1", "ipv6:%5B", "ipv4:::1"}) {
    EXPECT_FALSE(IsPeerOfThisMachine(peer)) << peer;
  }
}

}  // namespace
}  // namespace muster
