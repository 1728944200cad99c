#include "worker/task/network_check.h"

#include <string>

#include "common/cluster/host_flags.h"
#include "common/cluster/task_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::string> Check(const std::string& ps,
                                  const std::string& workers,
                                  const NetworkChoice& choice) {
  const auto cluster = ParseHostFlags(ps, workers);
  EXPECT_THAT(cluster, IsOk());
  ReportedLines lines;
  return CheckNetwork(*cluster, MakeTaskId(kWorkerJob, 0), choice,
                      lines.reporter());
}

TEST(NetworkCheckTest, ListedTask_ListensAtItsAddress) {
  EXPECT_EQ(*Check("localhost:1", "localhost:2", {}), "localhost:2");
  EXPECT_EQ(*Check("localhost:1", "localhost:2", {"127.0.0.1:3", false}),
            "127.0.0.1:3");
}

TEST(NetworkCheckTest, UnlistedTask_ServesNothing) {
  EXPECT_EQ(*Check("localhost:1", "any", {}), "");
  EXPECT_EQ(*Check("", "", {}), "");
  EXPECT_EQ(*Check("localhost:1", "any", {"127.0.0.1:3", false}),
            "127.0.0.1:3");
}

TEST(NetworkCheckTest, OtherMachines_WantTrust) {
  EXPECT_THAT(
      Check("192.0.2.1:1", "any", {}),
      StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("192.0.2.1")));
  EXPECT_THAT(Check("192.0.2.1:1", "any", {"", true}), IsOk());
  EXPECT_THAT(Check("localhost:1", "any", {"0.0.0.0:2", false}),
              StatusIs(absl::StatusCode::kUnauthenticated));
}

}  // namespace
}  // namespace muster
