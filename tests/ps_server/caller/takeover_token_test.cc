#include "ps_server/caller/takeover_token.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(TakeoverTokenTest, IsOfOneTakeoverAlone) {
  const uint64_t number = TakeoverToken(7, 8, 3);
  EXPECT_NE(number, 0);
  EXPECT_EQ(TakeoverToken(7, 8, 3), number);
  EXPECT_NE(TakeoverToken(8, 7, 3), number);
  EXPECT_NE(TakeoverToken(7, 9, 3), number);
  EXPECT_NE(TakeoverToken(7, 8, 4), number);
  EXPECT_NE(TakeoverToken(0x78, 3, 0), TakeoverToken(0x7, 0x83, 0));
}

}  // namespace
}  // namespace muster
