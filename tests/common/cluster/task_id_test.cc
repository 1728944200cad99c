#include "common/cluster/task_id.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(TaskIdTest, PrintsAndParses) {
  const TaskId task = MakeTaskId("worker", 12);
  EXPECT_EQ(TaskName(task), "/job:worker/task:12");
  const auto parsed = ParseTaskName("/job:worker/task:12");
  ASSERT_THAT(parsed, IsOk());
  EXPECT_TRUE(*parsed == task);
}

TEST(TaskIdTest, RefusesOtherNames) {
  for (const char* name :
       {"", "/", "worker:1", "/job:/task:1", "/job:worker", "/job:worker/task:",
        "/job:worker/task:-1", "/job:worker/task:x", "/job:worker/task:1x",
        "/job:worker/task:99999999999", "job:worker/task:1"}) {
    EXPECT_THAT(ParseTaskName(name),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << name;
  }
}

TEST(TaskIdTest, OrdersByJobThenIndex) {
  EXPECT_TRUE(MakeTaskId("ps", 9) < MakeTaskId("worker", 0));
  EXPECT_TRUE(MakeTaskId("ps", 1) < MakeTaskId("ps", 2));
  EXPECT_FALSE(MakeTaskId("ps", 1) < MakeTaskId("ps", 1));
  EXPECT_TRUE(MakeTaskId("ps", 1) != MakeTaskId("worker", 1));
}

TEST(TaskIdTest, KnowsTheChiefsOtherNames) {
  EXPECT_THAT(ParseJobName("ps"), IsOkAndHolds(std::string("ps")));
  EXPECT_THAT(ParseJobName("master"), IsOkAndHolds(std::string("chief")));
  EXPECT_THAT(ParseJobName("coordinator"), IsOkAndHolds(std::string("chief")));
}

TEST(TaskIdTest, OffersTheNearestJob) {
  EXPECT_THAT(ParseJobName("wroker"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("did you mean 'worker'?")));
}

}  // namespace
}  // namespace muster
