#include "ps_server/coordinator/step_rounds.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Time kNow = absl::UnixEpoch();

SyncReplication MakeSpec(int aggregate, int total, int least = 0) {
  SyncReplication spec;
  spec.set_replicas_to_aggregate(aggregate);
  spec.set_total_replicas(total);
  spec.set_min_replicas(least);
  return spec;
}

TaskKey Task(int index) { return {"worker", index}; }

std::set<TaskKey> Tasks(int count) {
  std::set<TaskKey> tasks;
  for (int i = 0; i < count; ++i) tasks.insert(Task(i));
  return tasks;
}

Delivery Of(int index, int64_t step = 1) {
  Delivery delivery;
  delivery.sender = MakeSender(index, 100 + index);
  delivery.step = step;
  return delivery;
}

std::vector<int> IndexesOf(const std::vector<Delivery>& deliveries) {
  std::vector<int> indexes;
  for (const Delivery& delivery : deliveries) {
    indexes.push_back(delivery.sender.task().index());
  }
  return indexes;
}

TEST(StepRoundsTest, RefusesImpossibleNumbersByName) {
  EXPECT_THAT(StepRounds::Check(MakeSpec(2, 3, 2)), IsOk());
  for (const auto& [spec, field] :
       {std::pair(MakeSpec(0, 3), "replicas_to_aggregate is 0"),
        std::pair(MakeSpec(4, 3), "total_replicas, which is 3"),
        std::pair(MakeSpec(2, 3, 3), "min_replicas is 3"),
        std::pair(MakeSpec(2, 3, -1), "min_replicas is -1")}) {
    EXPECT_THAT(StepRounds::Check(spec),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(field)));
  }
}

TEST(StepRoundsTest, ClosesAtTheFirstDistinctDeliveries) {
  StepRounds rounds(MakeSpec(2, 3), /*global_step=*/4);
  EXPECT_EQ(rounds.round(), 5);
  EXPECT_EQ(rounds.token().chosen_size(), 0);
  rounds.Open();
  EXPECT_TRUE(rounds.Deliver(Of(2, 7)));
  EXPECT_FALSE(rounds.Deliver(Of(2, 8))) << "one worker counted twice";
  EXPECT_FALSE(rounds.TryClose(Tasks(3), kNow).has_value());
  EXPECT_THAT(rounds.Missing(Tasks(3)), ElementsAre(Task(0), Task(1)));
  EXPECT_TRUE(rounds.Deliver(Of(0, 3)));
  const auto closed = rounds.TryClose(Tasks(3), kNow);
  ASSERT_TRUE(closed.has_value());
  EXPECT_THAT(IndexesOf(closed->chosen), ElementsAre(0, 2));
  const StepToken token = rounds.token();
  EXPECT_EQ(token.round(), 6);
  ASSERT_EQ(token.chosen_size(), 2);
  EXPECT_EQ(token.chosen(0).step(), 3);
  EXPECT_EQ(token.chosen(1).step(), 7);
  EXPECT_FALSE(rounds.is_open());
}

TEST(StepRoundsTest, NeedsNoMoreThanAreThere) {
  StepRounds rounds(MakeSpec(3, 3), 0);
  EXPECT_EQ(rounds.Needed(Tasks(3)), 3);
  EXPECT_EQ(rounds.Needed(Tasks(2)), 2);
  rounds.Open();
  rounds.Deliver(Of(2));
  // It left after its delivery: counted, and still not alone.
  EXPECT_EQ(rounds.Needed(Tasks(2)), 3);
  EXPECT_FALSE(rounds.TryClose(Tasks(2), kNow).has_value());
  rounds.Deliver(Of(0));
  const auto closed = rounds.TryClose(Tasks(1), kNow);
  ASSERT_TRUE(closed.has_value());
  EXPECT_THAT(IndexesOf(closed->chosen), ElementsAre(0, 2));
}

TEST(StepRoundsTest, DoesNotBeginWithoutThoseWhoAreStillStarting) {
  constexpr absl::Duration kWait = absl::Seconds(10);
  StepRounds rounds(MakeSpec(2, 3), 0, /*known=*/{}, kNow + kWait);
  rounds.Open();
  rounds.Deliver(Of(0));
  EXPECT_FALSE(rounds.TryClose(Tasks(1), kNow).has_value());
  EXPECT_EQ(rounds.Awaited(), 2);
  const auto closed = rounds.TryClose(Tasks(1), kNow + kWait);
  ASSERT_TRUE(closed.has_value()) << "they do not come";
  EXPECT_EQ(rounds.Awaited(), 0);
}

TEST(StepRoundsTest, DoesNotAwaitAWorkerThatCameAndDied) {
  StepRounds rounds(MakeSpec(3, 3), 0, /*known=*/{Task(2)},
                    kNow + absl::Seconds(10));
  rounds.Open();
  rounds.Deliver(Of(0));
  rounds.Deliver(Of(1));
  EXPECT_TRUE(rounds.TryClose(Tasks(2), kNow).has_value());
}

TEST(StepRoundsTest, NeverTakesFewerThanTheMinimum) {
  StepRounds rounds(MakeSpec(3, 3, 2), 0);
  rounds.Open();
  rounds.Deliver(Of(0));
  EXPECT_TRUE(rounds.TooFew(Tasks(1)));
  EXPECT_FALSE(rounds.TryClose(Tasks(1), kNow).has_value());
  rounds.SeeLive(Tasks(2), kNow);
  rounds.SeeLive(Tasks(1), kNow);
  EXPECT_FALSE(rounds.must_end()) << "it waits";
}

TEST(StepRoundsTest, EndsForTooFewOnlyOnceThereWereEnough) {
  SyncReplication spec = MakeSpec(3, 3, 2);
  spec.set_when_too_few(EXIT);
  StepRounds rounds(spec, 0);
  const auto ends_with = [&rounds](int workers) {
    rounds.SeeLive(Tasks(workers), kNow);
    return rounds.must_end();
  };
  EXPECT_FALSE(ends_with(1)) << "they are still coming";
  EXPECT_FALSE(ends_with(2));
  EXPECT_TRUE(ends_with(1));
  EXPECT_FALSE(ends_with(2)) << "it is back";
}

TEST(StepRoundsTest, NothingClosesWhileItIsHeldOrNobodyIsThere) {
  StepRounds rounds(MakeSpec(1, 3), 0);
  rounds.Open();
  rounds.Deliver(Of(0));
  rounds.Deliver(Of(1));
  rounds.Hold(kNow);
  EXPECT_FALSE(rounds.TryClose(Tasks(3), kNow).has_value());
  EXPECT_FALSE(rounds.TryClose({}, kNow + StepRounds::kLongestHold));
  const auto closed =
      rounds.TryClose(Tasks(3), kNow + StepRounds::kLongestHold);
  ASSERT_TRUE(closed.has_value());
  EXPECT_THAT(IndexesOf(closed->chosen), ElementsAre(0));
  EXPECT_THAT(IndexesOf(closed->dropped), ElementsAre(1));
  EXPECT_FALSE(rounds.is_held());
}

TEST(StepRoundsTest, AWithdrawnDeliveryIsNotChosen) {
  StepRounds rounds(MakeSpec(2, 2), 0);
  rounds.Open();
  rounds.Deliver(Of(0, 9));
  rounds.Withdraw(Task(0));
  EXPECT_TRUE(rounds.IsIdle());
  rounds.Join(Task(0));
  EXPECT_FALSE(rounds.IsIdle());
  EXPECT_TRUE(rounds.Deliver(Of(0, 1)));
  rounds.Deliver(Of(1));
  const auto closed = rounds.TryClose(Tasks(2), kNow);
  ASSERT_TRUE(closed.has_value());
  EXPECT_EQ(closed->chosen[0].step, 1);
}

TEST(StepRoundsTest, ARoundThatEverybodyHasLeftIsRetracted) {
  StepRounds rounds(MakeSpec(2, 2), 0);
  EXPECT_FALSE(rounds.IsIdle()) << "not open";
  rounds.Open();
  rounds.Join(Task(0));
  EXPECT_TRUE(rounds.HasJoined(Task(0)));
  rounds.Leave(Task(0));
  ASSERT_TRUE(rounds.IsIdle());
  rounds.Retract();
  EXPECT_FALSE(rounds.is_open());
  EXPECT_EQ(rounds.round(), 1);
}

}  // namespace
}  // namespace muster
