#include "ps_server/coordinator/row_leases.h"

#include <cstdint>
#include <string>

#include "common/rows/row_ranges.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/row_text.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

const TaskKey kA = {"worker", 0};
const TaskKey kB = {"worker", 1};
const TaskKey kC = {"worker", 2};

class RowLeasesTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = 10;

  void Start(int64_t limit, const RowLedger& ledger = {}) {
    leases_.Start(ledger, limit, kRows);
    for (const TaskKey& task : {kA, kB}) leases_.SetWish(task, {kRows, 2});
  }

  // Deals the task a lease and begins it.
  void Take(const TaskKey& task) {
    ASSERT_TRUE(leases_.TryDealFirst(task));
    leases_.Begin(task);
  }

  std::string Of(const TaskKey& task) const {
    return LeasesText(leases_.LeasesOf(task));
  }
  std::string Undone() const { return RangesText(leases_.Ledger().undone()); }

  RowLeases leases_;
};

TEST_F(RowLeasesTest, DealsInOrderUpToTheLimit) {
  Start(/*limit=*/35);
  EXPECT_TRUE(leases_.TryDeal(kA));
  EXPECT_TRUE(leases_.TryDeal(kB));
  EXPECT_TRUE(leases_.TryDeal(kA));
  EXPECT_FALSE(leases_.TryDeal(kB)) << "5 are left";
  EXPECT_EQ(Of(kA), "0+10 20+10");
  EXPECT_EQ(Of(kB), "10+10");
  EXPECT_EQ(leases_.NumLeft(), 5);
  EXPECT_EQ(leases_.NumRowsOf(kA), 20);
}

TEST_F(RowLeasesTest, WhatCameBackIsDealtFirst) {
  Start(kMaxCount);
  Take(kA);
  Take(kB);
  leases_.GiveBack(kA);
  leases_.Finish(kB);
  EXPECT_EQ(leases_.Counts().done(), 10);
  EXPECT_EQ(leases_.Counts().returned(), 10);
  leases_.SetWish(kB, {15, 0});
  Take(kB);
  EXPECT_EQ(Of(kB), "0+10,20+5") << "longer than what came back";
}

TEST_F(RowLeasesTest, AheadIsDealtWhileAllCouldHaveAnother) {
  Start(/*limit=*/50);
  Take(kA);
  Take(kB);
  EXPECT_TRUE(leases_.TryDealAhead(kA)) << "20 are left then, 10 for each";
  EXPECT_FALSE(leases_.TryDealAhead(kB));
  EXPECT_EQ(Of(kA), "0+10 20+10");
}

TEST_F(RowLeasesTest, GiveBack_KeepsThoseAhead) {
  Start(kMaxCount);
  Take(kA);
  ASSERT_TRUE(leases_.TryDealAhead(kA));
  leases_.GiveBack(kA);
  EXPECT_EQ(Of(kA), "10+10");
  leases_.GiveBack(kA);
  EXPECT_EQ(Of(kA), "10+10") << "nothing was begun";
  leases_.GiveBackAhead(kA);
  EXPECT_EQ(Of(kA), "");
  EXPECT_EQ(Undone(), "0+20");
}

TEST_F(RowLeasesTest, Skip_CountsRowsAsDone) {
  Start(kMaxCount);
  Take(kA);
  leases_.Skip(kA);
  EXPECT_EQ(leases_.Counts().skipped(), 10);
  EXPECT_EQ(leases_.Counts().done(), 10);
  EXPECT_EQ(Undone(), "");
}

TEST_F(RowLeasesTest, AnotherLengthOfSteps_DealsThoseAheadAnew) {
  Start(kMaxCount);
  Take(kA);
  ASSERT_TRUE(leases_.TryDealAhead(kA));
  leases_.SetWish(kA, {4, 1});
  EXPECT_EQ(Of(kA), "0+10") << "it is begun";
  ASSERT_TRUE(leases_.TryDealAhead(kA));
  EXPECT_EQ(Of(kA), "0+10 10+4");
}

TEST_F(RowLeasesTest, WhoHasSaidNothing_WantsWhatOthersDo) {
  Start(kMaxCount);
  EXPECT_EQ(leases_.WishOf(kC).step_rows, kRows);
  EXPECT_EQ(leases_.WishOf(kC).ahead, 2);
}

TEST_F(RowLeasesTest, LostWorker_MayReportItsRowsUnlessOthersHaveThem) {
  Start(kMaxCount);
  Take(kA);
  ASSERT_TRUE(leases_.TryDealAhead(kA));
  EXPECT_TRUE(leases_.Lapse(kA, /*may_repeat=*/true));
  EXPECT_EQ(leases_.Counts().returned(), 20);
  EXPECT_EQ(leases_.Counts().repeated(), 10) << "not those ahead";
  ASSERT_TRUE(leases_.TryReclaim(kA));
  EXPECT_EQ(Of(kA), "0+10");
  EXPECT_EQ(leases_.Counts().repeated(), 0);
  leases_.Lapse(kA, /*may_repeat=*/true);
  leases_.SetWish(kB, {3, 0});
  Take(kB);
  EXPECT_FALSE(leases_.TryReclaim(kA)) << "B has three of them";
  EXPECT_EQ(leases_.Counts().repeated(), 10);
  EXPECT_EQ(LeasesText(std::vector<RowLease>{leases_.BegunOf(kA)}), "0+10");
  Take(kA);
  EXPECT_TRUE(leases_.IsOfLapsed(kA, MakeLease(0, 10)));
  EXPECT_FALSE(leases_.IsOfLapsed(kA, leases_.BegunOf(kA)));
  leases_.ForgetLapsed(kA);
  EXPECT_FALSE(leases_.HasLapsed(kA));
}

TEST_F(RowLeasesTest, Leave_ForgetsTheTask) {
  Start(/*limit=*/40);
  Take(kA);
  EXPECT_TRUE(leases_.Leave(kA, /*may_repeat=*/false));
  EXPECT_FALSE(leases_.Leave(kA, /*may_repeat=*/false)) << "it had none";
  EXPECT_FALSE(leases_.TryReclaim(kA));
  EXPECT_EQ(leases_.Counts().repeated(), 0);
  Take(kB);
  ASSERT_TRUE(leases_.TryDealAhead(kB));
  EXPECT_TRUE(leases_.TryDealAhead(kB)) << "nothing is kept for A";
}

TEST_F(RowLeasesTest, Recall_LeavesWhatIsBegun) {
  Start(kMaxCount);
  Take(kA);
  ASSERT_TRUE(leases_.TryDealAhead(kA));
  ASSERT_TRUE(leases_.TryDeal(kB));
  ASSERT_TRUE(leases_.TryDealAhead(kB));
  leases_.RecallAhead();
  EXPECT_EQ(Of(kA), "0+10");
  EXPECT_EQ(Of(kB), "20+10") << "its first one";
  leases_.Recall();
  EXPECT_EQ(Of(kA), "0+10");
  EXPECT_EQ(Of(kB), "");
  leases_.LeaveUnless([](const TaskKey&) { return false; });
  EXPECT_EQ(Of(kA), "0+10");
}

TEST_F(RowLeasesTest, Ledger_GoesOnWithExactlyTheRest) {
  Start(kMaxCount);
  for (int step = 0; step < 3; ++step) {
    Take(kA);
    Take(kB);
    leases_.Finish(kB);
    leases_.GiveBack(kA);
    Take(kC);
  }
  const RowLedger ledger = leases_.Ledger();
  EXPECT_THAT(CheckLedger(ledger), IsOk());
  EXPECT_EQ(RangesText(ledger.undone()), "0+10,20+10");
  EXPECT_EQ(RangesText(leases_.Ledger({kC}, {MakeLease(10, 10)}).undone()),
            "10+20");
  Start(kMaxCount, ledger);
  EXPECT_EQ(leases_.Counts().done(), 30);
  leases_.SetWish(kA, {25, 0});
  Take(kA);
  EXPECT_EQ(Of(kA), "0+10,20+10,50+5");
}

TEST_F(RowLeasesTest, LowerLimit_DealsNothingBeyondIt) {
  Start(kMaxCount);
  Take(kA);
  Take(kB);
  leases_.GiveBack(kA);
  leases_.GiveBack(kB);
  leases_.SetLimit(15);
  EXPECT_EQ(leases_.NumLeft(), 15);
  Take(kA);
  EXPECT_FALSE(leases_.TryDeal(kB));
  leases_.SetWish(kB, {5, 0});
  Take(kB);
  EXPECT_EQ(Of(kB), "10+5");
}

TEST_F(RowLeasesTest, Resume_KeepsTheRowsUnlessTheDataSetIsAnother) {
  RowLedger ledger = MakeLedger(20);
  ledger.set_epoch_rows(15);
  Start(/*limit=*/30, ledger);
  EXPECT_EQ(leases_.Ledger().kind(), "rows");
  Take(kA);
  EXPECT_FALSE(leases_.Resume(15, 60, kRows));
  EXPECT_EQ(Undone(), "20+10");
  EXPECT_EQ(leases_.NumLeft(), 40);
  EXPECT_TRUE(leases_.Resume(/*epoch_rows=*/40, 120, kRows));
  EXPECT_EQ(leases_.Ledger().front(), 80) << "two epochs are begun";
  EXPECT_EQ(leases_.Ledger().known_from(), 80);
  EXPECT_EQ(Undone(), "");
}

TEST_F(RowLeasesTest, LeaseOfManyPieces_HasAsManyAsALeaseMayHave) {
  RowLedger ledger = MakeLedger(400);
  for (int i = 0; i < 100; ++i) {
    RowRange& range = *ledger.add_undone();
    range.set_first(4 * i);
    range.set_rows(i == 99 ? 3 : 1);
  }
  Start(/*limit=*/500, ledger);
  leases_.SetWish(kA, {100, 0});
  Take(kA);
  EXPECT_THAT(CheckRows(leases_.BegunOf(kA)), IsOk());
  EXPECT_EQ(NumRows(leases_.BegunOf(kA)), 100);
  Start(/*limit=*/400, ledger);
  EXPECT_FALSE(leases_.CanDeal(67)) << "64 pieces have 66 at most";
  leases_.SetWish(kA, {66, 0});
  Take(kA);
  EXPECT_THAT(CheckRows(leases_.BegunOf(kA)), IsOk());
  EXPECT_EQ(NumRows(leases_.BegunOf(kA)), 66);
}

TEST_F(RowLeasesTest, StepsWithoutRows_AreBegunAsOthers) {
  leases_.Start({}, kMaxCount, /*step_rows=*/0);
  EXPECT_TRUE(leases_.TryDealFirst(kA));
  leases_.Begin(kA);
  leases_.Begin(kA);
  EXPECT_EQ(leases_.num_begun(), 1);
  EXPECT_TRUE(leases_.Lapse(kA, /*may_repeat=*/true));
  EXPECT_TRUE(leases_.TryReclaim(kA));
  EXPECT_TRUE(leases_.Finish(kA).ranges().empty());
  EXPECT_EQ(leases_.num_begun(), 0);
}

TEST_F(RowLeasesTest, Passes_AreKnownFromTheFirstRowThatIsNotDone) {
  Start(kMaxCount);
  const auto add = [this](int64_t number, int64_t first) {
    StreamPass pass;
    pass.set_pass(number);
    pass.set_first(first);
    leases_.AddPass(pass);
  };
  Take(kA);
  add(1, 15);
  EXPECT_EQ(leases_.Ledger().kind(), "stream");
  add(2, 30);
  add(3, 20);  // before the second
  EXPECT_EQ(leases_.PassBefore(14).pass(), 0);
  EXPECT_EQ(leases_.PassBefore(29).pass(), 1);
  EXPECT_EQ(leases_.PassBefore(1000).pass(), 2);
  leases_.Finish(kA);
  for (int step = 0; step < 3; ++step) {
    Take(kB);
    leases_.Finish(kB);
  }
  add(3, 45);
  EXPECT_EQ(leases_.PassBefore(29).pass(), 0) << "nobody needs it any more";
  EXPECT_EQ(leases_.Ledger().passes_size(), 2);
}

TEST_F(RowLeasesTest, ManyWorkersAndRows_TakeLittleMemory) {
  constexpr int32_t kWorkers = 4096;
  leases_.Start(MakeLedger(0), 10'000'000'000, kRows);
  for (int32_t step = 0; step < 3; ++step) {
    for (int32_t i = 0; i < kWorkers; ++i) {
      const TaskKey task = {"worker", i};
      leases_.SetWish(task, {kRows, 2});
      Take(task);
      while (leases_.NumLeases(task) < 3) {
        ASSERT_TRUE(leases_.TryDealAhead(task));
      }
      if (step < 2) leases_.Finish(task);
    }
  }
  EXPECT_EQ(leases_.Counts().leased(), 3 * kRows * kWorkers);
  EXPECT_LT(leases_.MemoryBytes(), size_t{1} << 20);
}

}  // namespace
}  // namespace muster
