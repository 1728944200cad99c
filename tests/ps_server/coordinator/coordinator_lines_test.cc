// The coordinator's lines for the operator: workers that go and come.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/coordinator_job.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Sender kChief = MakeSender(0, 0x64);
const Sender kB = MakeSender(1, 0x65);

class CoordinatorLinesTest : public testing::Test, protected CoordinatorJob {
 protected:
  std::vector<std::string> Lines() { return coordinator().TakeLines(); }
};

TEST_F(CoordinatorLinesTest, TellsOnceThatAWorkerWasLostAndIsBack) {
  Start(2, ReplicationSpec(), StopAtStep(10));
  EXPECT_THAT(Lines(), IsEmpty());
  Pass(kTimeout * 1.5, {kChief});
  EXPECT_THAT(Lines(),
              ElementsAre("lost /job:worker/task:1: not heard of for 15 s"));
  Pass(absl::Seconds(1), {kChief});
  EXPECT_THAT(Lines(), IsEmpty());
  Pass(absl::Seconds(1), {kB, kB, kChief});
  EXPECT_THAT(Lines(), ElementsAre("/job:worker/task:1 is back"));
}

TEST_F(CoordinatorLinesTest, TellsOnceThatAWorkerWasReplaced) {
  Start(2, ReplicationSpec(), StopAtStep(10));
  const Sender again = MakeSender(1, 0xabc);
  Register(again);
  EXPECT_THAT(Lines(),
              ElementsAre("/job:worker/task:1 was started anew: incarnation "
                          "abc replaces 65"));
  Register(again);
  EXPECT_THAT(Lines(), IsEmpty());
  // One that was lost before is not also "back".
  Pass(kTimeout * 1.5, {kChief});
  Lines();
  Register(MakeSender(1, 0xdef));
  EXPECT_THAT(Lines(),
              ElementsAre("/job:worker/task:1 was started anew: incarnation "
                          "def replaces abc"));
}

TEST_F(CoordinatorLinesTest, AWorkerOfTheManifestThatComesIsNotBack) {
  Register(kChief);
  BeginEpochRequest begin;
  *begin.mutable_sender() = kChief;
  const auto begun = coordinator().BeginEpoch(begin, now());
  ASSERT_THAT(begun, IsOk());
  CommitEpochRequest commit;
  *commit.mutable_sender() = kChief;
  commit.set_model_epoch(begun->model_epoch());
  commit.mutable_stop()->set_steps(10);
  *commit.add_workers()->mutable_sender()->mutable_task() = kB.task();
  ASSERT_THAT(coordinator().CommitEpoch(commit, now()), IsOk());
  Register(kB);
  EXPECT_THAT(Lines(), IsEmpty());
  EXPECT_FALSE(WorkerOf(1).lost());
}

TEST_F(CoordinatorLinesTest, SynchronousTrainingTellsTheRowsOfAnUpdate) {
  Start(3, MakeSyncSpec(3, 3), StopAtStep(10));
  const Sender c = MakeSender(2, 102);
  Pass(kTimeout * 1.5, {kChief, c});
  EXPECT_THAT(
      Lines(),
      ElementsAre("lost /job:worker/task:1: not heard of for 15 s",
                  "the training goes on: an update has 20 rows, of 2 of 3 "
                  "workers"));
  Pass(absl::Seconds(1), {kB, kChief, c});
  EXPECT_THAT(Lines(),
              ElementsAre("/job:worker/task:1 is back",
                          "the training goes on: an update has 30 rows, of 3 "
                          "of 3 workers"));
}

TEST_F(CoordinatorLinesTest, WhoeverTrainsAloneIsNotToldToGoOnWithTooFew) {
  Start(2, MakeSyncSpec(2, 2, /*least=*/2), StopAtStep(10));
  Pass(kTimeout * 1.5, {kChief});
  EXPECT_THAT(Lines(),
              ElementsAre("lost /job:worker/task:1: not heard of for 15 s"));
}

TEST_F(CoordinatorLinesTest, WithBackupWorkersALostOneChangesNoUpdate) {
  Start(3, MakeSyncSpec(2, 3), StopAtStep(10));
  const Sender c = MakeSender(2, 102);
  Pass(kTimeout * 1.5, {kChief, c});
  EXPECT_THAT(Lines(),
              ElementsAre("lost /job:worker/task:1: not heard of for 15 s"));
  EXPECT_EQ(coordinator().State().update().workers(), 2);
}

TEST_F(CoordinatorLinesTest, AWorkerThatLeavesTakesItsRowsWithIt) {
  Start(2, MakeSyncSpec(2, 2), StopAtStep(10));
  Finish(kB);
  EXPECT_THAT(Lines(),
              ElementsAre("the training goes on: an update has 10 rows, of 1 "
                          "of 2 workers"));
}

// Of a cluster of three.
class CoordinatorAbsentTest : public testing::Test, protected CoordinatorJob {
 protected:
  CoordinatorAbsentTest() : CoordinatorJob(OptionsOf(3)) {}

  std::vector<std::string> Lines() { return coordinator().TakeLines(); }

  const Sender c_ = MakeSender(2, 102);
};

TEST_F(CoordinatorAbsentTest, WhoNeverComesIsNamedOnceAndWhenItJoins) {
  Start(2, MakeSyncSpec(3, 3), StopAtStep(10));
  const int64_t version = coordinator().state_version();
  EXPECT_LE(coordinator().NextDeadline(), now() + kTimeout);
  Pass(kTimeout * 1.5, {kChief, kB});
  EXPECT_THAT(Lines(),
              ElementsAre("/job:worker/task:2 has not come",
                          "the training goes on: an update has 20 rows, of 2 "
                          "of 3 workers"));
  EXPECT_GT(coordinator().state_version(), version) << "the chief is to know";
  EXPECT_EQ(coordinator().State().update().rows(), 20);
  Pass(absl::Seconds(1), {kChief, kB});
  EXPECT_THAT(Lines(), IsEmpty());
  Register(c_);
  EXPECT_THAT(Lines(),
              ElementsAre("/job:worker/task:2 has come",
                          "the training goes on: an update has 30 rows, of 3 "
                          "of 3 workers"));
  // The end is no loss.
  Finish(kChief, /*stop_job=*/true);
  Finish(kB);
  EXPECT_THAT(Lines(), IsEmpty());
  EXPECT_EQ(coordinator().State().update().workers(), 3);
}

TEST_F(CoordinatorAbsentTest, WhoeverWaitsForItIsToldItsName) {
  Start(2, MakeSyncSpec(3, 3), StopAtStep(10));
  for (const Sender& sender : {kChief, kB}) {
    ASSERT_TRUE(Step(sender, 0)->granted());
    EXPECT_FALSE(Step(sender, 1, /*round=*/1).has_value());
  }
  Pass(absl::Milliseconds(kWaitMs), {kChief, kB});
  const auto wait = Take(kChief);
  ASSERT_TRUE(wait.has_value());
  ASSERT_EQ(wait->waiting_for_size(), 1);
  EXPECT_EQ(wait->waiting_for(0).index(), 2);
  EXPECT_EQ(wait->waiting_why(), "to come");
}

TEST_F(CoordinatorAbsentTest, TooFewAreToldWhoIsMissing) {
  Start(1, MakeSyncSpec(3, 3, /*least=*/3), StopAtStep(10));
  ASSERT_TRUE(Step(kChief, 0)->granted());
  EXPECT_FALSE(Step(kChief, 1, /*round=*/1).has_value());
  Pass(absl::Milliseconds(kWaitMs), {kChief});
  const auto wait = Take(kChief);
  ASSERT_TRUE(wait.has_value());
  EXPECT_EQ(wait->waiting_for_size(), 2);
  EXPECT_EQ(wait->waiting_why(),
            "to come: 1 there, replication.sync.min_replicas is 3");
}

TEST_F(CoordinatorAbsentTest, WhereNobodyWaitsForItItIsNamedAllTheSame) {
  for (const ReplicationSpec& mode : {ReplicationSpec(), MakeBoundedSpec(1)}) {
    Start(2, mode, StopAtStep(10));
    Pass(kTimeout * 1.5, {kChief, kB});
    EXPECT_THAT(Lines(), ElementsAre("/job:worker/task:2 has not come"));
  }
  Register(c_);
  EXPECT_THAT(Lines(), ElementsAre("/job:worker/task:2 has come"));
}

}  // namespace
}  // namespace muster
