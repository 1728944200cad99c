#include "ps_server/coordinator/job_of_namespace.h"

#include "common/rpc/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CoordinatorOptions OptionsOfCluster() {
  CoordinatorOptions options;
  options.expected_tasks = 2;
  options.may_go_on = true;
  options.cluster.add_job()->set_name("worker");
  return options;
}

TEST(JobOfNamespaceTest, TheDefaultJobIsTheClusters) {
  const CoordinatorOptions job = OptionsOfJob(OptionsOfCluster(), "");
  EXPECT_EQ(job.expected_tasks, 2);
  EXPECT_EQ(job.cluster.job_size(), 1);
  EXPECT_FALSE(job.guards_tasks);
}

TEST(JobOfNamespaceTest, ANamedJobIsOfThoseThatCome) {
  const CoordinatorOptions job = OptionsOfJob(OptionsOfCluster(), "a");
  EXPECT_EQ(job.expected_tasks, 0);
  EXPECT_EQ(job.cluster.job_size(), 0);
  EXPECT_TRUE(job.guards_tasks);
  EXPECT_TRUE(job.may_go_on);
}

TEST(JobOfNamespaceTest, WhoIsNoMemberIsToRegister) {
  EXPECT_TRUE(kBringsJob<RegisterRequest>);
  EXPECT_FALSE(kBringsJob<StepRequest>);
  const absl::Status status = NoJobHere("step", "a");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("step: namespace 'a'"),
                                     HasSubstr("register"))));
  EXPECT_EQ(ReasonOf(status), ErrorReason::kNotRegistered);
}

}  // namespace
}  // namespace muster
