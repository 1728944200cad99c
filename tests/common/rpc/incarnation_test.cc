#include "common/rpc/incarnation.h"

#include <set>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(IncarnationTest, IsNeverZeroAndNeverTheSame) {
  constexpr int kStarts = 1000;
  std::set<uint64_t> seen;
  for (int i = 0; i < kStarts; ++i) seen.insert(NewIncarnation());
  EXPECT_EQ(seen.size(), kStarts);
  EXPECT_EQ(seen.count(0), 0);
}

}  // namespace
}  // namespace muster
