#include "ps_server/caller/caller.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/read_file.h"
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

TEST(CallerTest, TheSenderIsTheTaskOfTheCertificate) {
  const Caller worker = {Role::kWorker, TaskKey{"worker", 3}};
  EXPECT_THAT(CheckSender(kPushCall, SenderOf(TaskKey("worker", 3), 1), worker),
              IsOk());
  EXPECT_THAT(CheckSender(kPushCall, SenderOf(TaskKey("worker", 4), 1), worker),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("ParameterService/Push over gRPC"),
                             HasSubstr("/job:worker/task:3, sends as "
                                       "/job:worker/task:4"))));
  EXPECT_FALSE(CheckSender(kPushCall, Sender(), worker).ok());
  EXPECT_FALSE(
      CheckSender(kPushCall, SenderOf(TaskKey("worker", 3), 1), {Role::kViewer})
          .ok());
}

TEST(CallerTest, ATaskOfAnAllReduceIsAlsoItsPs) {
  Caller both = {Role::kWorker, TaskKey{"worker", 3}};
  both.ps = TaskKey{"ps", 2};
  EXPECT_THAT(CheckMayCall(kRequestSaveCall, both), IsOk());
  EXPECT_FALSE(CheckMayCall(kDefineCall, both).ok());
  EXPECT_THAT(CheckSender(kWatchCall, SenderOf(TaskKey("ps", 2), 1), both),
              IsOk());
  EXPECT_FALSE(
      CheckSender(kWatchCall, SenderOf(TaskKey("ps", 3), 1), both).ok());
}

TEST(CallerTest, AStrangerMayNothing) {
  for (const AnyMethod& method : kCallTable) {
    EXPECT_FALSE(May(Role::kStranger, method)) << method.path;
  }
}

std::string CellOf(const AnyMethod& method, Role role) {
  return method.callers.Contains(role) ? " x |" : "  |";
}

// "| `ParameterService/Hello` | x | x |  |  |  |  |".
std::string LineOf(const AnyMethod& method) {
  std::string line =
      absl::StrCat("| `", absl::StripPrefix(method.path, "/muster."), "` |");
  for (const Role role : {Role::kChief, Role::kWorker, Role::kPs,
                          Role::kEvaluator, Role::kViewer, Role::kAdmin}) {
    line += CellOf(method, role);
  }
  return line;
}

ProfileRequest ProfileOf(ProfileRequest::Action action) {
  ProfileRequest request;
  request.set_action(action);
  return request;
}

TEST(CallerTest, Recording_IsForWhoMayBeginAProfile_TheClockForMore) {
  for (const Role role : {Role::kChief, Role::kWorker}) {
    EXPECT_THAT(CheckMayProfile(ProfileOf(ProfileRequest::READ_CLOCK), {role}),
                IsOk());
    for (const auto action : {ProfileRequest::BEGIN, ProfileRequest::END}) {
      EXPECT_THAT(CheckMayProfile(ProfileOf(action), {role}),
                  StatusIs(absl::StatusCode::kPermissionDenied,
                           HasSubstr("viewer, admin")));
    }
  }
  EXPECT_THAT(
      CheckMayProfile(ProfileOf(ProfileRequest::BEGIN), {Role::kViewer}),
      IsOk());
}

TEST(CallerTest, WithoutKeys_AProfileIsForTheOwnMachine_TheClockForAll) {
  Caller other;
  other.is_local = false;
  const auto refused = StatusIs(absl::StatusCode::kPermissionDenied,
                                HasSubstr("is on another machine"));
  EXPECT_THAT(CheckMayProfile(ProfileOf(ProfileRequest::BEGIN), other),
              refused);
  EXPECT_THAT(CheckMayCall(kBeginProfileCall, other), refused);
  EXPECT_THAT(CheckMayCall(kSteerCall, other), refused);
  EXPECT_THAT(CheckMayCall(kProfileCall, other), IsOk());
  EXPECT_THAT(CheckMayCall(kAddProfileCall, other), IsOk());
  EXPECT_THAT(CheckMayProfile(ProfileOf(ProfileRequest::READ_CLOCK), other),
              IsOk());
  EXPECT_THAT(CheckMayProfile(ProfileOf(ProfileRequest::BEGIN), Caller()),
              IsOk());
}

TEST(CallerTest, TheTableOfTheReadmeIsTheCallTables) {
  const auto readme = ReadFile("ps_server/caller/README.md");
  ASSERT_THAT(readme, IsOk());
  std::vector<std::string> rows;
  for (const absl::string_view line : absl::StrSplit(*readme, '\n')) {
    if (absl::StrContains(line, "Service/")) rows.emplace_back(line);
  }
  std::vector<std::string> wanted;
  for (const AnyMethod& method : kCallTable) wanted.push_back(LineOf(method));
  EXPECT_EQ(rows, wanted);
}

}  // namespace
}  // namespace muster
