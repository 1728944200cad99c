#include "ps_server/coordinator/round_rows.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/row_text.h"

namespace muster {
namespace {

const TaskKey kA = {"worker", 0};
const TaskKey kB = {"worker", 1};
const TaskKey kC = {"worker", 2};
const std::set<TaskKey> kAll = {kA, kB, kC};

class RoundRowsTest : public testing::Test {
 protected:
  void Start(int64_t limit) { leases_.Start({}, limit, /*step_rows=*/10); }
  std::string Of(const TaskKey& task) const {
    return LeasesText(leases_.LeasesOf(task));
  }

  RowLeases leases_;
  RoundRows rows_{leases_};
};

TEST_F(RoundRowsTest, RowsGoByTheTasksOrder) {
  Start(kMaxCount);
  leases_.SetWish(kC, {10, 2});  // It alone has asked.
  ASSERT_TRUE(rows_.DealFirsts(kAll, 3));
  rows_.DealAhead(kAll, kMaxCount);
  EXPECT_EQ(Of(kA), "0+10 30+10 60+10");
  EXPECT_EQ(Of(kC), "20+10 50+10 80+10");
  for (const TaskKey& task : kAll) {
    leases_.Begin(task);
    leases_.Finish(task);
  }
  ASSERT_TRUE(rows_.DealFirsts(kAll, 3));
  rows_.DealAhead(kAll, kMaxCount);
  EXPECT_EQ(Of(kB), "40+10 70+10 100+10");
}

TEST_F(RoundRowsTest, NothingIsAheadInTheLastRound) {
  Start(/*limit=*/65);
  leases_.SetWish(kA, {10, 1});
  ASSERT_TRUE(rows_.DealFirsts(kAll, 3));
  rows_.DealAhead(kAll, kMaxCount);
  EXPECT_EQ(leases_.NumLeft(), 35) << "the last round's";
}

TEST_F(RoundRowsTest, NothingIsAheadOfMoreRoundsThanThereAre) {
  Start(kMaxCount);
  leases_.SetWish(kA, {10, 3});
  ASSERT_TRUE(rows_.DealFirsts(kAll, 3));
  rows_.DealAhead(kAll, /*rounds=*/0);
  EXPECT_EQ(Of(kA), "0+10");
  rows_.DealAhead(kAll, /*rounds=*/1);
  EXPECT_EQ(Of(kA), "0+10 30+10");
}

TEST_F(RoundRowsTest, RoundWithoutEnoughRows_CannotOpen) {
  Start(/*limit=*/29);
  EXPECT_FALSE(rows_.DealFirsts(kAll, 3));
  EXPECT_TRUE(rows_.DealFirsts(kAll, 2)) << "with a backup worker it can";
  EXPECT_TRUE(rows_.IsWithout(kC));
  EXPECT_EQ(rows_.CountWithout({kA, kB, kC}), 1);
  EXPECT_FALSE(rows_.TryDealTo(kC));
}

TEST_F(RoundRowsTest, WorkersWhomNobodyCanName_AreKeptRows) {
  Start(/*limit=*/29);
  EXPECT_FALSE(rows_.DealFirsts({kA}, 3));
  Start(/*limit=*/30);
  EXPECT_TRUE(rows_.DealFirsts({kA}, 3));
  EXPECT_EQ(Of(kA), "0+10");
}

TEST_F(RoundRowsTest, RowsOfWhoIsNotExpectedAnyMore_ComeBack) {
  Start(kMaxCount);
  ASSERT_TRUE(rows_.DealFirsts(kAll, 3));
  leases_.Begin(kC);
  leases_.Begin(kA);
  leases_.Finish(kA);
  ASSERT_TRUE(rows_.DealFirsts({kA}, 1));
  EXPECT_EQ(Of(kA), "10+10") << "B's";
  EXPECT_EQ(Of(kC), "20+10") << "it is under way";
}

// One has two of what is left, and another none.
TEST_F(RoundRowsTest, LeasesAheadAreSharedOutAgain_WhenRowsRunShort) {
  Start(/*limit=*/20);
  ASSERT_TRUE(leases_.TryDeal(kA));
  ASSERT_TRUE(leases_.TryDeal(kA));
  ASSERT_TRUE(rows_.DealFirsts({kA, kB}, 2));
  EXPECT_EQ(Of(kA), "0+10");
  EXPECT_EQ(Of(kB), "10+10");
}

TEST_F(RoundRowsTest, WhoJoinsLate_HasTheRowsAhead) {
  Start(/*limit=*/30);
  ASSERT_TRUE(rows_.DealFirsts({kA, kB}, 2));
  ASSERT_TRUE(leases_.TryDeal(kA));
  EXPECT_TRUE(rows_.TryDealTo(kC));
  EXPECT_EQ(Of(kC), "20+10");
  EXPECT_EQ(Of(kA), "0+10");
}

}  // namespace
}  // namespace muster
