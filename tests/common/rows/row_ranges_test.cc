#include "common/rows/row_ranges.h"

#include <initializer_list>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

using Pairs = std::initializer_list<std::pair<int64_t, int64_t>>;

RowLease LeaseOf(Pairs ranges) {
  RowLease lease;
  for (const auto& [first, rows] : ranges) {
    RowRange* const range = lease.add_ranges();
    range->set_first(first);
    range->set_rows(rows);
  }
  return lease;
}

RowLedger LedgerOf(int64_t front, Pairs undone) {
  RowLedger ledger;
  ledger.set_kind("rows");
  ledger.set_front(front);
  *ledger.mutable_undone() = LeaseOf(undone).ranges();
  return ledger;
}

TEST(RowRangesTest, PartsOfEpochs_AreWholeRows) {
  EXPECT_EQ(RowsOfEpochs(0.1, 30), 3);
  EXPECT_EQ(RowsOfEpochs(2.5, 101), 252);
  EXPECT_EQ(RowsOfEpochs(1e300, 30), 1'000'000'000'000'000);
}

TEST(RowRangesTest, PiecesAreCountedOneAfterTheOther) {
  const RowLease lease = LeaseOf({{100, 3}, {7, 2}});
  EXPECT_EQ(NumRows(lease), 5);
  EXPECT_EQ(PlaceOf(lease, 2), 102);
  EXPECT_EQ(PlaceOf(lease, 3), 7);
  EXPECT_EQ(DescribeRows(lease), "rows 100 to 102, 7 to 8");
}

TEST(RowRangesTest, OtherRowsOrAnotherOrder_AreAnotherLease) {
  const RowLease lease = LeaseOf({{100, 3}, {7, 2}});
  EXPECT_TRUE(lease == LeaseOf({{100, 3}, {7, 2}}));
  EXPECT_TRUE(lease != LeaseOf({{7, 2}, {100, 3}}));
  EXPECT_TRUE(lease != LeaseOf({{100, 3}}));
}

TEST(RowRangesTest, RowsOfAStepFromOutside_AreInRange) {
  EXPECT_THAT(CheckRows(LeaseOf({{0, 1}, {5, 2}})), IsOk());
  EXPECT_FALSE(CheckRows(LeaseOf({{0, 0}})).ok());
  EXPECT_FALSE(CheckRows(LeaseOf({{-1, 2}})).ok());
  EXPECT_FALSE(CheckRows(LeaseOf({{1, INT64_MAX}})).ok());
  RowLease many;
  for (int i = 0; i <= kMaxLeaseRanges; ++i) many.add_ranges()->set_rows(1);
  EXPECT_FALSE(CheckRows(many).ok());
}

TEST(RowRangesTest, LedgerWithRangesInOrder_IsTaken) {
  EXPECT_THAT(CheckLedger(RowLedger()), IsOk());
  EXPECT_THAT(CheckLedger(LedgerOf(100, {{0, 10}, {90, 10}})), IsOk());
}

TEST(RowRangesTest, LedgerThatCannotBe_IsRefusedWithItsField) {
  EXPECT_THAT(CheckLedger(LedgerOf(100, {{10, 10}, {15, 10}})).message(),
              HasSubstr("undone"));
  EXPECT_FALSE(CheckLedger(LedgerOf(100, {{10, 10}, {20, 10}})).ok());
  EXPECT_FALSE(CheckLedger(LedgerOf(100, {{95, 6}})).ok());
  EXPECT_FALSE(CheckLedger(LedgerOf(-1, {})).ok());
  RowLedger ledger = LedgerOf(100, {});
  ledger.set_kind("bag");
  EXPECT_THAT(CheckLedger(ledger).message(), HasSubstr("kind"));
  ledger.set_kind("stream");
  StreamPass* const pass = ledger.add_passes();
  pass->set_pass(2);
  *ledger.add_passes() = *pass;
  EXPECT_THAT(CheckLedger(ledger).message(), HasSubstr("pass"));
}

}  // namespace
}  // namespace muster
