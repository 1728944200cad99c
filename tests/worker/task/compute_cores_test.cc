#include "worker/task/compute_cores.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/task_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

ClusterSpec Cluster(int workers, bool evaluator) {
  ClusterDef def;
  JobDef* const ps = def.add_job();
  ps->set_name(kPsJob);
  (*ps->mutable_tasks())[0] = "localhost:1";
  JobDef* const job = def.add_job();
  job->set_name(kWorkerJob);
  for (int i = 0; i < workers; ++i) {
    (*job->mutable_tasks())[i] = absl::StrCat("localhost:", 2 + i);
  }
  if (evaluator) {
    JobDef* const evaluator_job = def.add_job();
    evaluator_job->set_name(kEvaluatorJob);
    (*evaluator_job->mutable_tasks())[0] = "localhost:1000";
  }
  return *ClusterSpec::Create(def);
}

TEST(ComputeCoresTest, ThreadsThatAreAskedForAreGiven) {
  EXPECT_THAT(ComputeThreads(3, ClusterSpec(), MakeTaskId(kWorkerJob, 0)),
              IsOkAndHolds(3));
  EXPECT_THAT(ComputeThreads(-1, ClusterSpec(), MakeTaskId(kWorkerJob, 0)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1")));
  EXPECT_THAT(
      ComputeThreads(1000000, ClusterSpec(), MakeTaskId(kWorkerJob, 0)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("--compute_threads=1000000: wanted 1 to 1024")));
}

TEST(ComputeCoresTest, TheTasksOfAMachineShareItsCores) {
  const TaskId worker = MakeTaskId(kWorkerJob, 0);
  const auto alone = ComputeThreads(0, ClusterSpec(), worker);
  ASSERT_THAT(alone, IsOk());
  for (const int workers : {1, 2, 3}) {
    const int all = workers + 1;
    EXPECT_THAT(ComputeThreads(0, Cluster(workers, false), worker),
                IsOkAndHolds(std::max(1, *alone / workers)));
    EXPECT_THAT(ComputeThreads(0, Cluster(workers, true), worker),
                IsOkAndHolds(std::max(1, *alone / all)));
    EXPECT_THAT(
        ComputeThreads(0, Cluster(workers, true), MakeTaskId(kEvaluatorJob, 0)),
        IsOkAndHolds(std::max(1, *alone / all)));
  }
}

TEST(ComputeCoresTest, NamesWhatIsNoCore) {
  EXPECT_THAT(PinToCpus(""), IsOk());
  for (const char* const text : {"x", "1-", "3-1", "0-1-2", "-1", "100000"}) {
    EXPECT_THAT(PinToCpus(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("--cpus=")))
        << text;
  }
}

}  // namespace
}  // namespace muster
