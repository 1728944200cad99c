#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/ctl/namespace_cluster.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using NamespaceDropTest = NamespaceCluster;

TEST_F(NamespaceDropTest, RefusesWhileWorkersTrainButByForce) {
  Come("a");
  const VerbResult refused = Run({"namespace", "drop", "a"});
  EXPECT_EQ(refused.exit_code, kExitBadConfig);
  EXPECT_THAT(refused.error, HasSubstr("1 tasks train there"));
  const VerbResult forced = Run({"namespace", "drop", "--force", "a"});
  EXPECT_EQ(forced.exit_code, kExitDone) << forced.error;
  EXPECT_EQ(forced.out, "namespace 'a' is dropped: 12 bytes freed\n");
  const VerbResult list = Run({"namespace", "ls"});
  EXPECT_THAT(list.out, Not(HasSubstr("'a'")));
}

TEST_F(NamespaceDropTest, NamesABadName) {
  const VerbResult result = Run({"namespace", "drop", "a b"});
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("wanted letters"));
}

}  // namespace
}  // namespace muster
