#include "ps_server/block/row_slabs.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(RowSlabsTest, Rows_KeepTheirPlacesWhileOthersCome) {
  RowSlabs rows(3);
  std::vector<float*> places;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(rows.Reserve(1));
    const uint32_t row = rows.Add(i);
    places.push_back(rows.values(row));
    std::fill_n(places.back(), 3, static_cast<float>(i));
  }
  for (uint32_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(rows[i].id, i);
    EXPECT_EQ(rows.values(i), places[i]);
    EXPECT_EQ(rows.values(i)[2], static_cast<float>(i));
  }
}

TEST(RowSlabsTest, ARemovedRow_GivesItsPlaceToTheNext) {
  RowSlabs rows(2);
  ASSERT_TRUE(rows.Reserve(3));
  rows.Add(10);
  const uint32_t gone = rows.Add(11);
  rows.Add(12);
  rows.Remove(gone);
  EXPECT_EQ(rows.rows(), 2);
  const int64_t bytes = rows.bytes();
  ASSERT_TRUE(rows.Reserve(1));
  EXPECT_EQ(rows.Add(13), gone);
  EXPECT_EQ(rows[gone].id, 13);
  EXPECT_EQ(rows[gone].updates, 0);
  EXPECT_EQ(rows.bytes(), bytes);
}

TEST(RowSlabsTest, Bytes_AreWhatReserveMakesOfThem) {
  for (const int64_t floats : {1, 16, 1000, 65536 * 3}) {
    RowSlabs rows(floats);
    for (const int64_t more : {0, 1, 2, 255, 700}) {
      const int64_t wanted = rows.BytesWith(more);
      ASSERT_TRUE(rows.Reserve(more));
      EXPECT_EQ(rows.bytes(), wanted) << floats << " " << more;
      EXPECT_GE(rows.bytes(), more * floats * 4);
    }
  }
}

// Beyond 32 MiB slabs share memory.
TEST(RowSlabsTest, RowsOfManySlabs_HavePlacesOfTheirOwn) {
  constexpr int64_t kFloats = 1000;
  constexpr uint32_t kRows = 20000;
  RowSlabs rows(kFloats);
  for (uint32_t i = 0; i < kRows; ++i) {
    const int64_t wanted = rows.BytesWith(1);
    ASSERT_TRUE(rows.Reserve(1));
    ASSERT_EQ(rows.bytes(), wanted);
    const uint32_t row = rows.Add(i);
    rows.values(row)[0] = rows.values(row)[kFloats - 1] = i;
  }
  for (uint32_t i = 0; i < kRows; ++i) {
    ASSERT_EQ(rows[i].id, i);
    ASSERT_EQ(rows.values(i)[0], i);
    ASSERT_EQ(rows.values(i)[kFloats - 1], i);
  }
  EXPECT_LT(rows.bytes(), (kFloats * kRows * 4) * 11 / 10 + (8 << 20));
}

TEST(RowSlabsTest, LargeRows_AreNotKeptInAdvance) {
  RowSlabs rows(int64_t{65536} * 3);
  ASSERT_TRUE(rows.Reserve(1));
  EXPECT_LT(rows.bytes(), 1 << 20);
}

}  // namespace
}  // namespace muster
