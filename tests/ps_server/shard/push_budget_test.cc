#include "ps_server/shard/push_budget.h"

#include "common/rpc/retry_after.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(PushBudgetTest, AdmitsUpToItsBytes) {
  PushBudget budget(100);
  EXPECT_THAT(budget.Admit(60), IsOk());
  EXPECT_THAT(budget.Admit(40), IsOk());
  const absl::Status refused = budget.Admit(1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(),
              HasSubstr("1 bytes finds 100 of 100 bytes waiting"));
  EXPECT_EQ(budget.waiting_bytes(), 100);
  EXPECT_EQ(budget.refused(), 1);
}

TEST(PushBudgetTest, WhatWasTakenMakesRoom) {
  PushBudget budget(100);
  EXPECT_THAT(budget.Admit(100), IsOk());
  budget.Release(100, absl::Microseconds(1));
  EXPECT_THAT(budget.Admit(100), IsOk());
}

TEST(PushBudgetTest, OnePartIsAlwaysAdmitted) {
  PushBudget budget(100);
  EXPECT_THAT(budget.Admit(1000), IsOk());
  EXPECT_FALSE(budget.Admit(1).ok());
}

TEST(PushBudgetTest, TheHintFollowsTheRate) {
  PushBudget budget(10 << 20);
  // 100 MB/s.
  for (int i = 0; i < 200; ++i) {
    ASSERT_THAT(budget.Admit(1000000), IsOk());
    budget.Release(1000000, absl::Milliseconds(10));
  }
  ASSERT_THAT(budget.Admit(10 << 20), IsOk());
  const auto hint = RetryAfter(budget.Admit(1));
  ASSERT_TRUE(hint.has_value());
  EXPECT_GT(*hint, absl::Milliseconds(50));
  EXPECT_LT(*hint, absl::Milliseconds(55));
}

TEST(PushBudgetTest, TheHintHasLimits) {
  PushBudget budget(1);
  ASSERT_THAT(budget.Admit(1), IsOk());
  EXPECT_EQ(RetryAfter(budget.Admit(1)), absl::Milliseconds(1));
  budget.Release(1, absl::Hours(1));
  ASSERT_THAT(budget.Admit(1), IsOk());
  EXPECT_EQ(RetryAfter(budget.Admit(1)), absl::Seconds(1));
}

TEST(PushBudgetTest, WhoFloodsLeavesRoomForAnotherNamespace) {
  PushBudget budget(100);
  for (int i = 0; i < 10; ++i) ASSERT_THAT(budget.Admit(10, "flood"), IsOk());
  EXPECT_FALSE(budget.Admit(10, "").ok()) << "not before a part was taken";
  budget.Release(10, absl::Microseconds(1), "flood");
  EXPECT_FALSE(budget.Admit(10, "flood").ok()) << "half is another's";
  EXPECT_THAT(budget.Admit(10, ""), IsOk());
}

TEST(PushBudgetTest, WhoIsAloneAgainHasAllOfIt) {
  PushBudget budget(100);
  ASSERT_THAT(budget.Admit(100, "a"), IsOk());
  ASSERT_FALSE(budget.Admit(10, "b").ok());
  budget.Release(100, absl::Microseconds(1), "a");
  for (int i = 0; i < 10; ++i) EXPECT_THAT(budget.Admit(10, "a"), IsOk());
}

}  // namespace
}  // namespace muster
