#include "ps_server/coordinator/members.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::Time kNow = absl::UnixEpoch();
const TaskKey kA = {"worker", 0};
const TaskKey kB = {"worker", 1};

class MembersTest : public testing::Test {
 protected:
  CoordinatorWorker& Admit(const TaskKey& key, uint64_t incarnation = 100) {
    CoordinatorWorker& worker = members_.FindOrAdd(key);
    worker.Admit(SenderOf(key, incarnation), /*has_finished=*/false);
    return worker;
  }

  static Delivery MakeDelivery(const TaskKey& key, int64_t staleness) {
    Delivery delivery;
    delivery.sender = SenderOf(key, 100);
    delivery.step = 3;
    delivery.examples = 10;
    delivery.staleness = staleness;
    return delivery;
  }

  Members members_;
};

TEST_F(MembersTest, FindsTheSenderOrSaysWhyNot) {
  Admit(kA, 100);
  ASSERT_THAT(members_.FindSender("step", MakeSender(0, 100)), IsOk());
  EXPECT_THAT(members_.FindSender("step", MakeSender(1, 100)).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("not registered here (was")));
  Admit(kA, 101);
  EXPECT_THAT(members_.FindSender("step", MakeSender(0, 100)).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(StartsWith("fenced: "), HasSubstr("replaced"))));
  EXPECT_THAT(members_.FindSender("step", MakeSender(0, 102)).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       Not(HasSubstr("fenced"))));
}

TEST_F(MembersTest, EachStateCountsForWhatItIs) {
  CoordinatorWorker& a = Admit(kA);
  Admit(kB);
  EXPECT_THAT(members_.Active(), ElementsAre(kA, kB));
  a.state = MemberState::kStaying;
  EXPECT_THAT(members_.Active(), ElementsAre(kB));
  EXPECT_TRUE(members_.IsAnotherThere(kB)) << "it has not left";
  EXPECT_TRUE(a.State().finished());
  a.state = MemberState::kFinished;
  EXPECT_FALSE(members_.IsAnotherThere(kB));
  a.state = MemberState::kLost;
  EXPECT_TRUE(a.State().lost());
  EXPECT_FALSE(a.State().finished());
  EXPECT_THAT(members_.Registered(), ElementsAre(kA, kB));
}

TEST_F(MembersTest, WhoStayedRejoinsAndWhoLeftDoesNot) {
  Admit(kA).state = MemberState::kStaying;
  Admit(kB).state = MemberState::kFinished;
  members_.Rejoin();
  EXPECT_THAT(members_.Active(), ElementsAre(kA));
}

TEST_F(MembersTest, ARestoreOrAnotherStart_LowersNoTotals) {
  CoordinatorWorker& worker = Admit(kA);
  members_.Count(
      {{MakeDelivery(kA, 0), MakeDelivery(kA, 0)}, {MakeDelivery(kA, 0)}},
      kNow);
  members_.Restore(CommitEpochRequest());
  Admit(kA, 101);
  EXPECT_EQ(worker.steps, 0);
  EXPECT_EQ(worker.totals.steps, 2);
  EXPECT_EQ(worker.totals.examples, 20);
  EXPECT_EQ(worker.totals.dropped_steps, 1);
  EXPECT_EQ(worker.totals.last_step, kNow);
}

TEST_F(MembersTest, AnUnsavedChiefIsWaitedForThoughItHasFinished) {
  CoordinatorWorker& chief = Admit(kA);
  chief.state = MemberState::kFinished;
  chief.last_heard = kNow;
  EXPECT_FALSE(members_.IsAnyWaitedFor());
  EXPECT_EQ(members_.OldestWord(), absl::InfiniteFuture());
  chief.awaited = true;
  EXPECT_TRUE(members_.IsAnyWaitedFor());
  EXPECT_EQ(members_.OldestWord(), kNow);
}

TEST_F(MembersTest, CountsStepsForTheirWorkers) {
  Admit(kA);
  Admit(kB);
  members_.Count({{MakeDelivery(kA, 2)}, {MakeDelivery(kB, 1)}}, kNow);
  EXPECT_EQ(members_.Find(kA)->steps, 1);
  EXPECT_EQ(members_.Find(kA)->chosen_step, 3);
  EXPECT_EQ(members_.Find(kB)->steps, 0);
  EXPECT_EQ(members_.Find(kB)->dropped_steps, 1);
  EXPECT_THAT(members_.staleness_counts(), ElementsAre(0, 0, 1));
  members_.Count({{MakeDelivery(kA, 1'000'000)}, {}}, kNow);
  EXPECT_EQ(members_.staleness_counts().size(), 65u);
}

TEST_F(MembersTest, ARestoreSaysWhatEveryoneHasDone) {
  Admit(kA);
  members_.Count({{MakeDelivery(kA, 0)}, {}}, kNow);
  CommitEpochRequest commit;
  WorkerState& saved = *commit.add_workers();
  *saved.mutable_sender()->mutable_task() = MakeSender(1, 0).task();
  saved.set_steps(40);
  members_.Restore(commit);
  EXPECT_EQ(members_.Find(kA)->steps, 0);
  EXPECT_TRUE(members_.staleness_counts().empty());
  ASSERT_NE(members_.Find(kB), nullptr);
  EXPECT_EQ(members_.Find(kB)->steps, 40);
  EXPECT_TRUE(members_.Find(kB)->State().lost()) << "it has not come yet";
  members_.Restore(CommitEpochRequest());
  EXPECT_EQ(members_.Find(kB), nullptr) << "only that manifest knew it";
}

}  // namespace
}  // namespace muster
