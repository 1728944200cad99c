#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/ctl/namespace_cluster.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using NamespaceShowTest = NamespaceCluster;

TEST_F(NamespaceShowTest, ShowsTheJobAndEachShard) {
  Come("a");
  const VerbResult result = Run({"namespace", "show", "a"});
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("job INITIAL step=0"),
                    HasSubstr("\n  rows done=0 leased=0 returned=0 "
                              "trained_on_twice=0 passed_over=0"),
                    HasSubstr("/job:worker/task:0 trains steps=0 examples=0 "
                              "leased_rows=0\n"),
                    HasSubstr("/job:ps/task:0 LOADING tensors=1 bytes=12")));
}

TEST_F(NamespaceShowTest, NamesOneThatIsNotThere) {
  const VerbResult result = Run({"namespace", "show", "b"});
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("no ps task has namespace 'b'"));
}

TEST_F(NamespaceShowTest, WithoutAName_SaysHowTheNamelessOneIsNamed) {
  EXPECT_THAT(Run({"namespace", "show"}).error,
              HasSubstr("wanted NAME ('': the nameless namespace), found 0"));
  EXPECT_THAT(Run({"namespace", "show", "--help"}).out,
              HasSubstr("NAME ('': the nameless namespace)"));
}

}  // namespace
}  // namespace muster
