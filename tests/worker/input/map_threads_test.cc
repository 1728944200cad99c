#include "worker/input/map_threads.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

absl::Status Torn(int64_t row) {
  return absl::DataLossError(absl::StrCat("row ", row, " is torn"));
}

TEST(MapThreadsTest, PreparesEachRowOnce) {
  for (const int count : {1, 2, 5}) {
    MapThreads threads(count);
    for (const int64_t rows : {0, 1, 3, 100, 101}) {
      std::vector<int> prepared(rows);
      EXPECT_THAT(threads.ForEachRow(rows,
                                     [&](int64_t i) {
                                       ++prepared[i];
                                       return absl::OkStatus();
                                     }),
                  IsOk());
      EXPECT_THAT(prepared, Each(1)) << count << " threads, " << rows;
    }
  }
}

TEST(MapThreadsTest, RowsArePreparedAtTheSameTime) {
  MapThreads threads(3);
  std::atomic<int> begun{0};
  EXPECT_THAT(threads.ForEachRow(3,
                                 [&](int64_t) {
                                   ++begun;
                                   while (begun < 3) std::this_thread::yield();
                                   return absl::OkStatus();
                                 }),
              IsOk());
}

TEST(MapThreadsTest, TheErrorIsThatOfTheFirstBadRow) {
  for (const int count : {1, 2, 7}) {
    MapThreads threads(count);
    for (int attempt = 0; attempt < 20; ++attempt) {
      const absl::Status status = threads.ForEachRow(100, [](int64_t i) {
        return i == 37 || i == 38 || i > 60 ? Torn(i) : absl::OkStatus();
      });
      EXPECT_THAT(status,
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr("row 37 ")));
    }
    // One call's errors are not the next one's.
    EXPECT_THAT(threads.ForEachRow(5, [](int64_t) { return absl::OkStatus(); }),
                IsOk());
  }
}

TEST(MapThreadsTest, AfterAStopNoRowIsBegun) {
  MapThreads threads(1);
  int64_t last = -1;
  EXPECT_THAT(threads.ForEachRow(10,
                                 [&](int64_t i) {
                                   last = i;
                                   if (i == 4) threads.Stop();
                                   return absl::OkStatus();
                                 }),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(last, 4);
  EXPECT_THAT(threads.ForEachRow(1, [](int64_t i) { return Torn(i); }),
              StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace muster
