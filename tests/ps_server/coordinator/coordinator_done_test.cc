#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/coordinator_job.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

// A chief that takes no more steps, beside a worker that does.
class CoordinatorDoneTest : public ::testing::Test {
 protected:
  // Reports `step`, unless it is 0, and takes no other.
  std::optional<StepReply> BeDone(int64_t step = 0, int64_t round = 0) {
    StepRequest request = job_.MakeStep(chief_, step, round);
    request.set_is_done(true);
    const uint64_t id = job_.Number(chief_);
    EXPECT_THAT(job_.Send(request, id), IsOk());
    return job_.Take(chief_);
  }

  CoordinatorJob job_;
  const Sender chief_ = MakeSender(0, 100);
  const Sender worker_ = MakeSender(1, 101);
};

TEST_F(CoordinatorDoneTest, ADoneTask_GetsNoStepAndReturnsItsOwn) {
  job_.Start(2, ReplicationSpec(), StopAtStep(2));
  ASSERT_TRUE(job_.Step(chief_, 0)->granted());
  const auto reply = BeDone();
  ASSERT_TRUE(reply.has_value());
  EXPECT_FALSE(reply->granted());
  EXPECT_FALSE(job_.WorkerOf(0).finished());
  EXPECT_TRUE(job_.Step(worker_, 0)->granted());
  EXPECT_TRUE(job_.Step(worker_, 1)->granted()) << "the chief's";
  job_.Step(worker_, 2);
  EXPECT_EQ(job_.coordinator().phase(), STOPPING);
}

TEST_F(CoordinatorDoneTest, TheLastStepOfADoneTask_Counts) {
  job_.Start(2, ReplicationSpec(), StopAtStep(9));
  ASSERT_TRUE(job_.Step(chief_, 0)->granted());
  EXPECT_FALSE(BeDone(1)->granted());
  EXPECT_EQ(job_.coordinator().global_step(), 1);
}

TEST_F(CoordinatorDoneTest, NoClockWaitsForADoneTask) {
  ReplicationSpec replication;
  replication.mutable_bounded_staleness()->set_bound(0);
  job_.Start(2, replication, StopAtStep(9));
  ASSERT_TRUE(job_.Step(chief_, 0)->granted());
  ASSERT_TRUE(job_.Step(worker_, 0)->granted());
  EXPECT_FALSE(job_.Step(worker_, 1).has_value()) << "waits for the chief";
  BeDone();
  const auto reply = job_.Take(worker_);
  ASSERT_TRUE(reply.has_value());
  EXPECT_TRUE(reply->granted());
}

TEST_F(CoordinatorDoneTest, NoRoundWaitsForADoneTask) {
  ReplicationSpec replication;
  replication.mutable_sync();
  job_.Start(2, replication, StopAtStep(9));
  ASSERT_TRUE(job_.Step(chief_, 0)->granted());
  ASSERT_TRUE(job_.Step(worker_, 0)->granted());
  EXPECT_FALSE(job_.Step(worker_, 1, 1).has_value()) << "waits for the chief";
  BeDone();
  const auto reply = job_.Take(worker_);
  ASSERT_TRUE(reply.has_value());
  EXPECT_TRUE(reply->granted());
  EXPECT_EQ(job_.coordinator().global_step(), 1);
}

TEST_F(CoordinatorDoneTest, AnotherQuestion_TakesStepsAgain) {
  job_.Start(2, ReplicationSpec(), StopAtStep(9));
  BeDone();
  EXPECT_TRUE(job_.Step(chief_, 0)->granted());
}

}  // namespace
}  // namespace muster
