#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/ctl/namespace_cluster.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// Rows of a running job: tests/integration.
using TableLsTest = NamespaceCluster;

TEST_F(TableLsTest, PsTasksWithoutTables_AreSaid) {
  Come("sweep/1");
  const VerbResult result = Run({"table", "ls"});
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_EQ(result.out, "the ps tasks hold no tables\n");
}

TEST_F(TableLsTest, APsThatIsAway_IsWorthAnotherTry) {
  task_->Drain();
  const VerbResult result = Run({"table", "ls"});
  EXPECT_EQ(result.exit_code, kExitRetryable);
  EXPECT_THAT(result.error, HasSubstr("does not answer"));
}

TEST_F(TableLsTest, WithoutACluster_IsRefused) {
  EXPECT_EQ(RunVerb({"table", "ls"}, nullptr).exit_code, kExitBadConfig);
}

}  // namespace
}  // namespace muster
