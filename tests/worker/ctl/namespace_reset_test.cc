#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/ctl/namespace_cluster.h"

namespace muster {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

using NamespaceResetTest = NamespaceCluster;

TEST_F(NamespaceResetTest, RefusesWhileWorkersTrainButByForce) {
  Come("a");
  const VerbResult refused = Run({"namespace", "reset", "a"});
  EXPECT_EQ(refused.exit_code, kExitBadConfig);
  EXPECT_THAT(refused.error, HasSubstr("1 tasks train there"));
  const VerbResult forced = Run({"namespace", "reset", "--force", "a"});
  EXPECT_EQ(forced.exit_code, kExitDone) << forced.error;
  EXPECT_EQ(forced.out, "namespace 'a' is reset: 12 bytes freed\n");
  const VerbResult list = Run({"namespace", "ls"});
  EXPECT_THAT(list.out, ContainsRegex("'a' +INITIAL +0 +0 +0 +never"));
}

TEST_F(NamespaceResetTest, NamesABadName) {
  const VerbResult result = Run({"namespace", "reset", "a b"});
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("wanted letters"));
}

}  // namespace
}  // namespace muster
