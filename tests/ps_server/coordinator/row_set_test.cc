#include "ps_server/coordinator/row_set.h"

#include <cstdint>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(RowSetTest, NeighboursAreOneRange) {
  RowSet rows;
  rows.Add(0, 5);
  rows.Add(10, 5);
  EXPECT_THAT(rows.ranges(), ElementsAre(Pair(0, 5), Pair(10, 5)));
  rows.Add(5, 5);
  EXPECT_THAT(rows.ranges(), ElementsAre(Pair(0, 15)));
  EXPECT_EQ(rows.num_rows(), 15);
}

TEST(RowSetTest, RemoveFromWithin_LeavesBothEnds) {
  RowSet rows;
  rows.Add(10, 10);
  rows.Remove(13, 2);
  EXPECT_THAT(rows.ranges(), ElementsAre(Pair(10, 3), Pair(15, 5)));
  EXPECT_TRUE(rows.Contains(10, 3));
  EXPECT_FALSE(rows.Contains(12, 2));
  EXPECT_FALSE(rows.Contains(9, 2));
  EXPECT_EQ(rows.NumRowsBelow(16), 4);
}

TEST(RowSetTest, RandomChanges_AreThoseOfASetOfPlaces) {
  std::mt19937 random(1);
  RowSet rows;
  std::set<int64_t> places;
  for (int change = 0; change < 20000; ++change) {
    const int64_t first = random() % 100;
    const int64_t count = 1 + random() % 8;
    int64_t had = 0;
    for (int64_t i = 0; i < count; ++i) had += places.count(first + i);
    ASSERT_EQ(rows.Contains(first, count), had == count);
    if (had == 0) rows.Add(first, count);
    if (had == count) rows.Remove(first, count);
    for (int64_t i = 0; i < count; ++i) {
      if (had == 0) places.insert(first + i);
      if (had == count) places.erase(first + i);
    }
    ASSERT_EQ(rows.num_rows(), static_cast<int64_t>(places.size()));
  }
}

}  // namespace
}  // namespace muster
