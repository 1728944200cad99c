#include "common/cluster/host_flags.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(HostFlagsTest, NumbersHostsInTheirOrder) {
  const auto spec = ParseHostFlags("p0:1, p1:1", "w0:1,w1:1,w2:1");
  ASSERT_THAT(spec, IsOk());
  EXPECT_THAT(spec->tasks("ps"), ElementsAre(Pair(0, "p0:1"), Pair(1, "p1:1")));
  EXPECT_EQ(spec->tasks("worker").size(), 3);
}

TEST(HostFlagsTest, AnyIsWorkersThatComeAndGo) {
  const auto spec = ParseHostFlags("p0:1", " any");
  ASSERT_THAT(spec, IsOk());
  EXPECT_TRUE(spec->takes_any_worker());
  EXPECT_THAT(ParseHostFlags("any", "w0:1"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(HostFlagsTest, NothingGivenIsTheEmptySpec) {
  const auto spec = ParseHostFlags("", " ");
  ASSERT_THAT(spec, IsOk());
  EXPECT_TRUE(spec->empty());
}

TEST(HostFlagsTest, RefusesBadHosts) {
  struct Case {
    const char* ps;
    const char* worker;
    const char* wanted;
  };
  const Case kCases[] = {
      {"p0:1,", "", "/job:ps/task:1: address ''"},
      {"p0:1", "w0", "--ps_hosts and --worker_hosts: /job:worker/task:0"},
      {"p0:1", "p0:1", "duplicate address 'p0:1'"},
  };
  for (const Case& c : kCases) {
    EXPECT_THAT(
        ParseHostFlags(c.ps, c.worker),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.wanted)));
  }
}

}  // namespace
}  // namespace muster
