#include "worker/input/stream/endless_records.h"

#include <memory>
#include <numeric>
#include <vector>

#include "common/base/stopped_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/stream/counting_stream.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

constexpr uint64_t kSeed = 7;

EndlessRecords Records(int64_t rows, int64_t buffer, uint64_t seed = kSeed) {
  return EndlessRecords(std::make_unique<CountingStream>(rows), seed, buffer);
}

// The numbers of the next `count` rows.
std::vector<int64_t> Take(EndlessRecords& records, int count) {
  std::vector<int64_t> rows;
  OrderedRecord next;
  for (int i = 0; i < count; ++i) {
    EXPECT_THAT(records.Next(&next), IsOk());
    rows.push_back(next.record.row);
  }
  return rows;
}

TEST(EndlessRecordsTest, BeginsAnewAfterTheEndAndCountsPasses) {
  for (const int64_t buffer : {0, 1}) {
    EndlessRecords records = Records(3, buffer);
    EXPECT_THAT(Take(records, 7), ElementsAre(0, 1, 2, 0, 1, 2, 0));
    OrderedRecord next;
    ASSERT_THAT(records.Next(&next), IsOk());
    EXPECT_EQ(next.epoch, 2);
    EXPECT_EQ(next.place, 1);
  }
}

// Such a buffer may take minutes to fill.
TEST(EndlessRecordsTest, AStopEndsTheFillingOfTheBuffer) {
  EndlessRecords records = Records(3, 2);
  records.Stop();
  OrderedRecord next;
  EXPECT_TRUE(IsStopped(records.Next(&next)));
}

TEST(EndlessRecordsTest, EachPassHasAllRowsInAnOrderOfItsOwn) {
  constexpr int kRows = 100;
  std::vector<int64_t> all(kRows);
  std::iota(all.begin(), all.end(), 0);
  for (const int64_t buffer : {2, 10, 99, 100, 1000}) {
    EndlessRecords records = Records(kRows, buffer);
    const std::vector<int64_t> first = Take(records, kRows);
    const std::vector<int64_t> second = Take(records, kRows);
    EXPECT_THAT(first, UnorderedElementsAreArray(all)) << buffer;
    EXPECT_THAT(second, UnorderedElementsAreArray(all)) << buffer;
    EXPECT_NE(first, all) << buffer;
    EXPECT_NE(first, second) << buffer;
    for (int place = 0; place < kRows; ++place) {
      EXPECT_LT(first[place], place + buffer) << buffer;
    }
    EndlessRecords other = Records(kRows, buffer, kSeed + 1);
    EXPECT_NE(Take(other, kRows), first) << buffer;
    EndlessRecords again = Records(kRows, buffer);
    EXPECT_EQ(Take(again, kRows), first) << buffer;
  }
}

TEST(EndlessRecordsTest, APassIsTheSameWhereverItIsBegun) {
  EndlessRecords records = Records(20, 5);
  Take(records, 3 * 20);
  const std::vector<int64_t> fourth = Take(records, 20);
  EndlessRecords later = Records(20, 5);
  ASSERT_THAT(later.Begin(3), IsOk());
  EXPECT_EQ(Take(later, 20), fourth);
}

TEST(EndlessRecordsTest, PeekShowsWhatNextReturns) {
  EndlessRecords records = Records(7, 3);
  EndlessRecords plain = Records(7, 3);
  const std::vector<int64_t> order = Take(plain, 20);
  for (int i = 0; i < 10; ++i) {
    for (const size_t ahead : {0, 8, 3}) {
      const auto shown = records.Peek(ahead);
      ASSERT_THAT(shown, IsOk());
      EXPECT_EQ((*shown)->record.row, order[i + ahead]);
    }
    EXPECT_EQ(Take(records, 1).front(), order[i]);
  }
}

TEST(EndlessRecordsTest, AStreamWithoutRowsIsAnError) {
  EndlessRecords records = Records(0, 4);
  OrderedRecord next;
  EXPECT_THAT(records.Next(&next), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("'FILE'")));
}

}  // namespace
}  // namespace muster
