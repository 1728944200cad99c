#include "worker/checkpoint/held_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/cluster/task_id.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Sender MakeSender(int index, uint64_t incarnation) {
  Sender sender;
  *sender.mutable_task() = MakeTaskId(kWorkerJob, index);
  sender.set_incarnation(incarnation);
  return sender;
}

// A step whose worker has done `steps` with it, of 10 rows each.
HeldStep MakeHeld(const Sender& sender, int64_t step, int64_t steps) {
  HeldStep held;
  *held.mutable_sender() = sender;
  held.set_step(step);
  held.mutable_counts()->set_steps(steps);
  held.mutable_counts()->set_examples(steps * 10);
  return held;
}

BeginSnapshotReply MakeCut(std::initializer_list<HeldStep> held) {
  BeginSnapshotReply cut;
  cut.set_is_pushed_to(true);
  cut.mutable_held()->Assign(held.begin(), held.end());
  return cut;
}

const Sender kFirst = MakeSender(0, 100);
const Sender kSecond = MakeSender(1, 101);

TEST(StepsOnAllShardsTest, StepThatOneShardLacks_IsNotOnAllShards) {
  const auto steps = StepsOnAllShards(
      {MakeCut({MakeHeld(kFirst, 7, 7)}), MakeCut({MakeHeld(kFirst, 6, 6)})});
  ASSERT_THAT(steps, SizeIs(1));
  EXPECT_EQ(steps[0].step(), 6);
  EXPECT_EQ(steps[0].counts().steps(), 6);
}

TEST(StepsOnAllShardsTest, WorkerWithoutAStepOnOneShard_IsLeftOut) {
  const HeldStep held = MakeHeld(kFirst, 7, 7);
  EXPECT_THAT(StepsOnAllShards({MakeCut({held}), MakeCut({})}), IsEmpty());
  EXPECT_THAT(StepsOnAllShards({MakeCut({}), MakeCut({held})}), IsEmpty());
}

TEST(StepsOnAllShardsTest, StartOnOneShardOnly_IsLeftOut) {
  EXPECT_THAT(StepsOnAllShards({MakeCut({MakeHeld(kFirst, 7, 7)}),
                                MakeCut({MakeHeld(MakeSender(0, 99), 7, 7)})}),
              IsEmpty());
}

TEST(StepsOnAllShardsTest, ShardThatNoPushChanges_IsPassedOver) {
  EXPECT_THAT(StepsOnAllShards(
                  {BeginSnapshotReply(), MakeCut({MakeHeld(kFirst, 6, 6)})}),
              SizeIs(1));
  EXPECT_THAT(StepsOnAllShards({BeginSnapshotReply()}), IsEmpty());
}

class CountHeldStepsTest : public ::testing::Test {
 protected:
  // Two workers that have reported 5 steps each.
  CountHeldStepsTest() {
    state_.set_global_step(10);
    state_.set_examples(100);
    for (const Sender& sender : {kFirst, kSecond}) {
      WorkerState* const worker = state_.add_workers();
      *worker->mutable_sender() = sender;
      worker->set_steps(5);
      worker->set_examples(50);
    }
  }

  absl::Status Count(const HeldStep& counted) {
    ConfirmCutReply reply;
    *reply.add_counted() = counted;
    return CountHeldSteps(reply, &state_);
  }

  JobState state_;
};

TEST_F(CountHeldStepsTest, CountedSteps_RaiseTheWorkerAndTheSums) {
  ASSERT_THAT(Count(MakeHeld(kSecond, 7, 7)), IsOk());
  EXPECT_EQ(state_.global_step(), 12);
  EXPECT_EQ(state_.examples(), 120);
  EXPECT_EQ(state_.workers(0).steps(), 5);
  EXPECT_EQ(state_.workers(1).steps(), 7);
  EXPECT_EQ(state_.workers(1).examples(), 70);
}

TEST_F(CountHeldStepsTest, StepThatWasReportedBefore_ChangesNothing) {
  ASSERT_THAT(Count(MakeHeld(kSecond, 4, 4)), IsOk());
  EXPECT_EQ(state_.global_step(), 10);
  EXPECT_EQ(state_.workers(1).steps(), 5);
}

TEST_F(CountHeldStepsTest, WorkerThatCameAfterTheState_IsAdded) {
  ASSERT_THAT(Count(MakeHeld(MakeSender(2, 102), 1, 1)), IsOk());
  EXPECT_EQ(state_.global_step(), 11);
  ASSERT_EQ(state_.workers_size(), 3);
  EXPECT_EQ(state_.workers(2).examples(), 10);
}

TEST_F(CountHeldStepsTest, NewerStartOfAWorker_GoesOnFromItsTask) {
  ASSERT_THAT(Count(MakeHeld(MakeSender(1, 201), 1, 6)), IsOk());
  EXPECT_EQ(state_.global_step(), 11);
  EXPECT_EQ(state_.workers_size(), 2);
}

TEST_F(CountHeldStepsTest, StartReplacedBetweenStateAndCut_WantsAnotherCut) {
  ConfirmCutReply reply;
  *reply.add_replaced() = MakeSender(1, 99);  // Before the state.
  ASSERT_THAT(CountHeldSteps(reply, &state_), IsOk());
  *reply.add_replaced() = kSecond;
  EXPECT_THAT(CountHeldSteps(reply, &state_),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("worker/task:1")));
}

// With the mark of a push of `step`, beside the steps that it holds whole.
BeginSnapshotReply WithMark(BeginSnapshotReply cut, const Sender& sender,
                            int64_t step) {
  DuplicateMark* const mark = cut.add_marks();
  *mark->mutable_sender() = sender;
  mark->set_step(step);
  return cut;
}

TEST(BegunStepsTest, NewestOfEachStart_IsThatOfAnyShard) {
  const Sender first_again = MakeSender(0, 99);
  const std::vector<HeldStep> begun =
      BegunSteps({WithMark(MakeCut({MakeHeld(kFirst, 6, 6)}), kFirst, 7),
                  WithMark(MakeCut({}), kFirst, 9),
                  WithMark(MakeCut({}), first_again, 2)});
  ASSERT_THAT(begun, SizeIs(2));
  EXPECT_EQ(begun[0].sender().incarnation(), kFirst.incarnation());
  EXPECT_EQ(begun[0].step(), 9);
  EXPECT_EQ(begun[1].sender().incarnation(), 99u);
  EXPECT_EQ(begun[1].step(), 2);
}

}  // namespace
}  // namespace muster
