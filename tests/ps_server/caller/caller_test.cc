#include "ps_server/caller/caller.h"

#include <optional>

#include "common/rpc/call_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

bool May(Role role, const AnyMethod& method) {
  return CheckMayCall(method, {role, std::nullopt, Transport::kGrpc}).ok();
}

TEST(CallerTest, TheRefusalNamesTheCallTheCallerAndWhoMay) {
  const Caller worker = {Role::kWorker, TaskKey{"worker", 3},
                         Transport::kSharedMemory};
  EXPECT_THAT(CheckMayCall(kWatchCall, worker), IsOk());
  EXPECT_THAT(
      CheckMayCall(kLoadCall, worker),
      StatusIs(absl::StatusCode::kPermissionDenied,
               AllOf(HasSubstr("/muster.ParameterService/Load over shared "
                               "memory"),
                     HasSubstr("/job:worker/task:3"),
                     HasSubstr("the role worker; wanted one of: chief"))));
}

TEST(CallerTest, WhoHasProvedNothingMayMakeEveryCall) {
  EXPECT_TRUE(May(Role::kUnproven, kDefineCall));
  EXPECT_TRUE(May(Role::kUnproven, kRequestSaveCall));
}

TEST(CallerTest, EachRoleMayWhatItNeedsAndNoMore) {
  EXPECT_TRUE(May(Role::kChief, kDefineCall));
  EXPECT_TRUE(May(Role::kChief, kPushCall));
  EXPECT_FALSE(May(Role::kChief, kRequestSaveCall));
  EXPECT_TRUE(May(Role::kWorker, kPushCall));
  EXPECT_FALSE(May(Role::kWorker, kDefineCall));
  EXPECT_TRUE(May(Role::kPs, kRequestSaveCall));
  EXPECT_FALSE(May(Role::kPs, kPushCall));
  EXPECT_TRUE(May(Role::kEvaluator, kWatchCall));
  EXPECT_FALSE(May(Role::kEvaluator, kStepCall));
  for (const Role role : {Role::kViewer, Role::kAdmin}) {
    EXPECT_TRUE(May(role, kGetJobStateCall));
    EXPECT_FALSE(May(role, kWatchCall));
  }
}

}  // namespace
}  // namespace muster
