#include "ps_server/shard/incarnations.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class IncarnationsTest : public testing::Test {
 protected:
  IncarnationsTest() { TakeOver(worker_); }

  void TakeOver(const Sender& sender) {
    const absl::StatusOr<uint64_t> number = incarnations_.Admit(sender, 0);
    ASSERT_THAT(number, IsOk());
    EXPECT_THAT(incarnations_.Admit(sender, *number), IsOkAndHolds(0));
  }

  const Sender worker_ = MakeSender(0, 1);
  Incarnations incarnations_;
};

TEST_F(IncarnationsTest, ANewIncarnationRetiresTheOld) {
  const Sender restarted = MakeSender(0, 2);
  TakeOver(restarted);
  EXPECT_THAT(incarnations_.CheckCurrent(restarted), IsOk());
  EXPECT_EQ(incarnations_.Current(worker_), 2);
  EXPECT_THAT(
      incarnations_.CheckCurrent(worker_),
      StatusIs(absl::StatusCode::kFailedPrecondition, StartsWith("fenced: ")));
  EXPECT_THAT(
      incarnations_.Admit(worker_, 0),
      StatusIs(absl::StatusCode::kFailedPrecondition, StartsWith("fenced: ")));
}

// A Hello that a dead process left on the way changes nothing: nobody is there
// to confirm it, and what it confirms is not this takeover.
TEST_F(IncarnationsTest, NobodyTakesOverWithoutHavingConfirmedIt) {
  const Sender dead = MakeSender(0, 2);
  const Sender living = MakeSender(0, 3);
  const uint64_t of_dead = *incarnations_.Admit(dead, 0);
  EXPECT_NE(of_dead, 0);
  EXPECT_EQ(*incarnations_.Admit(dead, 0), of_dead) << "repeatable";
  EXPECT_THAT(incarnations_.CheckCurrent(worker_), IsOk())
      << "nothing has changed";
  EXPECT_NE(*incarnations_.Admit(living, of_dead), 0) << "of another takeover";
  TakeOver(living);
  EXPECT_NE(*incarnations_.Admit(dead, 0), 0);
  EXPECT_NE(*incarnations_.Admit(dead, of_dead), 0);
  EXPECT_THAT(incarnations_.CheckCurrent(living), IsOk());
}

TEST_F(IncarnationsTest, MemoryIsBounded) {
  for (int32_t i = 1; i < Incarnations::kMaxTasks; ++i) {
    ASSERT_THAT(incarnations_.Admit(MakeSender(i, 1), 0), IsOkAndHolds(0));
  }
  EXPECT_THAT(
      incarnations_.Admit(MakeSender(1 << 20, 1), 0),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("4096")));
  EXPECT_THAT(incarnations_.Admit(MakeSender(3, 0), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0")));
}

TEST_F(IncarnationsTest, ThereIsAlwaysRoomForTheTasksOfTheCluster) {
  ClusterDef cluster;
  JobDef* const job = cluster.add_job();
  job->set_name("worker");
  (*job->mutable_tasks())[0] = "localhost:1";
  Incarnations crowded{ListedTasks(cluster)};
  for (int32_t i = 0; i < Incarnations::kMaxTasks; ++i) {
    ASSERT_THAT(crowded.Admit(MakeSender(i, 1, "invented"), 0),
                IsOkAndHolds(0));
  }
  EXPECT_THAT(crowded.Admit(MakeSender(1 << 20, 1, "invented"), 0),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(crowded.Admit(worker_, 0), IsOkAndHolds(0));
}

TEST_F(IncarnationsTest, AJobNameOfAnyLengthIsNotKept) {
  EXPECT_THAT(
      incarnations_.Admit(MakeSender(0, 1, std::string(1 << 20, 'j')), 0),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("job")));
}

}  // namespace
}  // namespace muster
