#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/ctl/namespace_cluster.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

using NamespaceLsTest = NamespaceCluster;

TEST_F(NamespaceLsTest, ListsThemWithJobWorkersAndBytes) {
  Come("sweep/1");
  const VerbResult result = Run({"namespace", "ls"});
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(
      result.out,
      AllOf(ContainsRegex("namespace +job +step +workers +bytes +last heard"),
            ContainsRegex("'' +INITIAL +0 +0 +0 +never"),
            ContainsRegex("'sweep/1' +INITIAL +0 +1 +12 +0 s ago")));
}

TEST_F(NamespaceLsTest, APsThatIsAwayIsWorthAnotherTry) {
  task_->Drain();
  const VerbResult result = Run({"namespace", "ls"});
  EXPECT_EQ(result.exit_code, kExitRetryable);
  EXPECT_THAT(result.error, AllOf(HasSubstr("/job:ps/task:0 at 127.0.0.1:"),
                                  HasSubstr("does not answer")));
}

TEST_F(NamespaceLsTest, ANetworkWithoutKeysIsRefused) {
  const VerbResult result =
      RunVerb({"namespace", "ls", "--ps_hosts=10.0.0.1:1"}, nullptr);
  EXPECT_EQ(result.exit_code, kExitInsecure);
  EXPECT_THAT(result.error, HasSubstr("without --certs_dir"));
}

TEST_F(NamespaceLsTest, WantsACluster) {
  const VerbResult result = RunVerb({"namespace", "ls"}, nullptr);
  EXPECT_EQ(result.exit_code, kExitBadConfig);
}

}  // namespace
}  // namespace muster
