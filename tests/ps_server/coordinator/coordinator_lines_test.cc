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
                  "the training goes on: an update now has 20 rows, of 2 "
                  "workers"));
  Pass(absl::Seconds(1), {kB, kChief, c});
  EXPECT_THAT(Lines(),
              ElementsAre("/job:worker/task:1 is back",
                          "the training goes on: an update now has 30 rows, "
                          "of 3 workers"));
}

TEST_F(CoordinatorLinesTest, WhoeverTrainsAloneIsNotToldToGoOnWithTooFew) {
  Start(2, MakeSyncSpec(2, 2, /*least=*/2), StopAtStep(10));
  Pass(kTimeout * 1.5, {kChief});
  EXPECT_THAT(Lines(),
              ElementsAre("lost /job:worker/task:1: not heard of for 15 s"));
}

}  // namespace
}  // namespace muster
