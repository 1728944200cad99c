#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/ctl/running_job.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

using DrainTest = RunningJob;

TEST_F(DrainTest, ReturnsWhenTheWorkerHasLeft) {
  Commit();
  Play(
      [](const JobState& state) {
        for (const WorkerState& worker : state.workers()) {
          if (worker.is_drained()) return true;
        }
        return false;
      },
      [this](const JobState&) { Finish(worker_); });
  const VerbResult result = Run({"drain", "/job:worker/task:1"});
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_EQ(result.out, "/job:worker/task:1 has left\n");
}

TEST_F(DrainTest, OfTheChief_IsRefusedByName) {
  Commit();
  const VerbResult result = Run({"drain", "/job:worker/task:0"});
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("it is the chief"));
}

TEST_F(DrainTest, OfNoTask_IsNamed) {
  EXPECT_THAT(Run({"drain", "worker-1"}).error, HasSubstr("worker-1"));
  EXPECT_THAT(Run({"drain", "/job:worker/task:9"}).error,
              HasSubstr("this job has no such task"));
}

}  // namespace
}  // namespace muster
