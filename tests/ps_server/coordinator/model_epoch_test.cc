#include "ps_server/coordinator/model_epoch.h"

#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

CommitEpochRequest MakeCommit(int64_t epoch, uint64_t first_ps = 70) {
  CommitEpochRequest commit;
  commit.set_model_epoch(epoch);
  commit.set_fingerprint(5);
  (*commit.mutable_ps_incarnations())[0] = first_ps;
  return commit;
}

TEST(ModelEpochTest, IsAboveAllThatWereSeen) {
  ModelEpoch epoch;
  epoch.Begin(0);
  EXPECT_EQ(epoch.announced(), 1);
  epoch.Begin(0);
  EXPECT_EQ(epoch.announced(), 2);
  epoch.Begin(7);
  EXPECT_EQ(epoch.announced(), 8);
  EXPECT_EQ(epoch.committed(), 0);
}

TEST(ModelEpochTest, RefusesALateBeginAndOneFarAhead) {
  ModelEpoch epoch;
  epoch.Begin(0);
  epoch.Commit(MakeCommit(1));
  EXPECT_THAT(epoch.CheckSeen(1), IsOk());
  EXPECT_THAT(epoch.CheckSeen(0), StatusIs(absl::StatusCode::kAborted));
  for (const int64_t seen : {int64_t{-1}, int64_t{1} << 40}) {
    EXPECT_THAT(epoch.CheckSeen(seen),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(ModelEpochTest, IsCommittedWithItsStartsOfThePs) {
  ModelEpoch epoch;
  EXPECT_TRUE(epoch.IsCurrent(0, 0));
  EXPECT_THAT(epoch.CheckCommitted("hold", 0),
              StatusIs(absl::StatusCode::kAborted));
  epoch.Begin(0);
  epoch.Commit(MakeCommit(1));
  EXPECT_THAT(epoch.CheckCommitted("hold", 1), IsOk());
  EXPECT_TRUE(epoch.IsCurrent(1, 70));
  EXPECT_FALSE(epoch.IsCurrent(1, 71));
  EXPECT_TRUE(epoch.IsHeldBy(MakeSender(0, 70, "ps")));
  EXPECT_FALSE(epoch.IsHeldBy(MakeSender(1, 70, "ps")));
}

TEST(ModelEpochTest, ARepeatHasTheSameNumberModelAndPs) {
  ModelEpoch epoch;
  EXPECT_FALSE(epoch.IsRepeat(CommitEpochRequest()));
  epoch.Begin(0);
  epoch.Commit(MakeCommit(1));
  EXPECT_TRUE(epoch.IsRepeat(MakeCommit(1)));
  EXPECT_FALSE(epoch.IsRepeat(MakeCommit(1, /*first_ps=*/60)));
  epoch.Begin(1);
  EXPECT_FALSE(epoch.IsRepeat(MakeCommit(1)));
}

}  // namespace
}  // namespace muster
