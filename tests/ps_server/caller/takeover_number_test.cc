#include "ps_server/caller/takeover_number.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(TakeoverNumberTest, IsOfOneTakeoverAlone) {
  const uint64_t number = TakeoverNumber(7, 8, 3);
  EXPECT_NE(number, 0);
  EXPECT_EQ(TakeoverNumber(7, 8, 3), number);
  EXPECT_NE(TakeoverNumber(8, 7, 3), number);
  EXPECT_NE(TakeoverNumber(7, 9, 3), number);
  EXPECT_NE(TakeoverNumber(7, 8, 4), number);
  EXPECT_NE(TakeoverNumber(0x78, 3, 0), TakeoverNumber(0x7, 0x83, 0));
}

}  // namespace
}  // namespace muster
