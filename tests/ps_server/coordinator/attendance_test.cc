#include "ps_server/coordinator/attendance.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Time kStart = absl::UnixEpoch();
const absl::Time kAssembled = kStart + absl::Seconds(30);
const TaskKey kA = {"worker", 0};
const TaskKey kB = {"worker", 1};

CommitEpochRequest MakeCommit(int aggregate, int total) {
  CommitEpochRequest commit;
  commit.set_batch_size(10);
  SyncReplication& sync = *commit.mutable_replication()->mutable_sync();
  sync.set_replicas_to_aggregate(aggregate);
  sync.set_total_replicas(total);
  return commit;
}

TEST(AttendanceTest, WhoeverIsComplete_SaysNothing) {
  Attendance attendance({kA, kB});
  attendance.Start(MakeCommit(2, 2), kAssembled);
  EXPECT_THAT(attendance.Look({kA}, 2, kStart), IsEmpty());
  EXPECT_FALSE(attendance.IsDue(kStart));
  EXPECT_THAT(attendance.Look({kA, kB}, 2, kAssembled), IsEmpty());
  EXPECT_EQ(attendance.assembled_at(), absl::InfiniteFuture());
  EXPECT_EQ(attendance.update().rows(), 20);
}

TEST(AttendanceTest, AClusterWithoutWorkersStillTellsTheRows) {
  Attendance attendance({});
  attendance.Start(MakeCommit(2, 2), kAssembled);
  EXPECT_THAT(attendance.Look({kA}, 1, kAssembled),
              ElementsAre("the training goes on: an update has 10 rows, of 1 "
                          "of 2 workers"));
  EXPECT_THAT(attendance.Look({kA, kB}, 0, kAssembled), IsEmpty())
      << "no update can be made";
  EXPECT_EQ(attendance.update().workers(), 1);
}

TEST(AttendanceTest, ANewEpochCountsAsCompleteAgain) {
  Attendance attendance({kA, kB});
  attendance.Start(MakeCommit(2, 2), kAssembled);
  attendance.Look({kA}, 1, kAssembled);
  attendance.Start(MakeCommit(2, 2), kAssembled + absl::Seconds(30));
  EXPECT_FALSE(attendance.IsDue(kAssembled));
  EXPECT_EQ(attendance.update().workers(), 2);
}

TEST(AttendanceTest, AModeWithoutCommonUpdatesHasNone) {
  Attendance attendance({kA, kB});
  attendance.Start(CommitEpochRequest(), kAssembled);
  EXPECT_THAT(attendance.Look({kA}, 0, kAssembled),
              ElementsAre("/job:worker/task:1 has not come"));
  EXPECT_EQ(attendance.update().workers(), 0);
}

}  // namespace
}  // namespace muster
