#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/ctl/running_job.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

using StatusTest = RunningJob;

TEST_F(StatusTest, ShowsJobWorkersAndPsTasks) {
  Commit();
  const VerbResult result = Run({"status"});
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out, AllOf(HasSubstr("RUNNING at step 0, 0 examples"),
                                HasSubstr("no save since the model was loaded"),
                                ContainsRegex("/job:worker/task:1 +trains +0"),
                                ContainsRegex("/job:ps/task:0 +EMPTY +0 +0")));
}

TEST_F(StatusTest, WishesOfOperators_AreShown) {
  Commit();
  Run({"stop", "--max_wait=0"});
  Run({"drain", "/job:worker/task:1", "--max_wait=0"});
  EXPECT_THAT(Run({"status"}).out,
              AllOf(HasSubstr("an operator stops it"),
                    ContainsRegex("/job:worker/task:1 +drained")));
}

TEST_F(StatusTest, WatchOfAJobThatIsDone_Returns) {
  Commit();
  Finish(worker_);
  FinishRequest finish;
  *finish.mutable_sender() = chief_;
  finish.set_reason("done");
  finish.set_stop_job(true);
  Call(&CoordinationService::Stub::Finish, finish, FinishReply());
  const VerbResult result = Run({"status", "--watch"});
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out, HasSubstr("DONE at step 0"));
}

TEST_F(StatusTest, NamespaceWithoutAJob_IsInitial) {
  EXPECT_THAT(Run({"status", "--namespace=other"}).out, HasSubstr("INITIAL"));
}

}  // namespace
}  // namespace muster
