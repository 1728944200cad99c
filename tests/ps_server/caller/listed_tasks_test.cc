#include "ps_server/caller/listed_tasks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

ClusterDef MakeCluster(int workers, bool chief) {
  ClusterDef cluster;
  JobDef* const job = cluster.add_job();
  job->set_name("worker");
  for (int i = 0; i < workers; ++i) (*job->mutable_tasks())[i] = "host:1";
  if (!chief) return cluster;
  JobDef* const other = cluster.add_job();
  other->set_name("chief");
  (*other->mutable_tasks())[0] = "host:2";
  return cluster;
}

TEST(ListedTasksTest, ATaskThatItsJobDoesNotListIsRefusedByName) {
  const ListedTasks listed(MakeCluster(2, /*chief=*/false));
  EXPECT_THAT(listed.Check("register", {"worker", 1}), IsOk());
  EXPECT_TRUE(listed.Contains({"worker", 1}));
  EXPECT_THAT(listed.Check("register", {"worker", 77}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("does not list /job:worker/task:77")));
}

TEST(ListedTasksTest, ATaskOfAJobThatIsNotListedIsBelieved) {
  const ListedTasks listed(MakeCluster(2, /*chief=*/false));
  EXPECT_THAT(listed.Check("register", {"chief", 0}), IsOk());
  EXPECT_FALSE(listed.Contains({"chief", 0}));
  EXPECT_THAT(ListedTasks().Check("register", {"worker", 77}), IsOk());
}

TEST(ListedTasksTest, TheChiefIsTheJobOfThatNameElseWorkerZero) {
  const ListedTasks workers(MakeCluster(2, /*chief=*/false));
  EXPECT_TRUE(workers.MayBeChief({"worker", 0}));
  EXPECT_TRUE(workers.MayBeChief({"chief", 0})) << "its cluster may list it";
  EXPECT_FALSE(workers.MayBeChief({"worker", 1}));
  const ListedTasks both(MakeCluster(2, /*chief=*/true));
  EXPECT_TRUE(both.MayBeChief({"chief", 0}));
  EXPECT_FALSE(both.MayBeChief({"worker", 0}));
  EXPECT_TRUE(ListedTasks().MayBeChief({"worker", 0}));
  EXPECT_FALSE(ListedTasks().MayBeChief({"worker", 77}));
}

}  // namespace
}  // namespace muster
