#include "ps_server/coordinator/stream_passes.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

StreamPass PassAt(int64_t pass, int64_t first) {
  StreamPass result;
  result.set_pass(pass);
  result.set_first(first);
  return result;
}

TEST(StreamPassesTest, NewestThatBeginsBefore_IsFound) {
  StreamPasses passes;
  EXPECT_TRUE(passes.Add(PassAt(1, 100)));
  EXPECT_TRUE(passes.Add(PassAt(2, 200)));
  EXPECT_EQ(passes.Before(99).pass(), 0);
  EXPECT_EQ(passes.Before(100).pass(), 1);
  EXPECT_EQ(passes.Before(1000).first(), 200);
}

TEST(StreamPassesTest, FirstWordOfAPass_Holds) {
  StreamPasses passes;
  passes.Add(PassAt(1, 100));
  EXPECT_FALSE(passes.Add(PassAt(1, 90)));
  passes.Add(PassAt(2, 100));
  passes.Add(PassAt(0, 200));
  EXPECT_EQ(passes.size(), 1) << "neither fits";
  EXPECT_EQ(passes.Before(100).first(), 100);
}

TEST(StreamPassesTest, PassesThatNobodyReads_AreForgotten) {
  StreamPasses passes;
  for (int pass = 1; pass <= 3; ++pass) passes.Add(PassAt(pass, 100 * pass));
  passes.ForgetBefore(250);
  RowLedger ledger;
  passes.AddTo(ledger);
  ASSERT_EQ(ledger.passes_size(), 2);
  EXPECT_EQ(ledger.passes(0).pass(), 2);
  passes.ForgetBefore(1000);
  EXPECT_EQ(passes.size(), 1);
}

}  // namespace
}  // namespace muster
