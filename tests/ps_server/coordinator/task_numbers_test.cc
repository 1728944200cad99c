#include "ps_server/coordinator/task_numbers.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kLast = static_cast<int32_t>(Members::kMaxTasks) - 1;

class TaskNumbersTest : public testing::Test {
 protected:
  CoordinatorWorker& Join(int32_t index) {
    const Sender sender = MakeSender(index, 1000 + index);
    CoordinatorWorker& worker = members_.FindOrAdd(KeyOf(sender));
    worker.Admit(sender, /*has_finished=*/false);
    return worker;
  }
  absl::StatusOr<int32_t> Assign(uint64_t incarnation) {
    return numbers_.Assign(incarnation, members_, now_);
  }

  void ExpectUnavailable(const std::string& words) {
    EXPECT_THAT(Assign(1),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr(words)));
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Seconds(1000);
  Members members_;
  TaskNumbers numbers_;
};

// The job has a new model.
class RunningTaskNumbersTest : public TaskNumbersTest {
 protected:
  RunningTaskNumbersTest() { numbers_.OnCommit(/*is_restored=*/false, now_); }
};

TEST_F(TaskNumbersTest, BeforeAnEpoch_NobodyIsNumbered) {
  ExpectUnavailable("the chief, which is started with --task_index=0");
  numbers_.OnCommit(/*is_restored=*/false, now_);
  EXPECT_EQ(*Assign(1), 1);
}

TEST_F(TaskNumbersTest, AfterARestore_LivingWorkersComeBackFirst) {
  numbers_.OnCommit(/*is_restored=*/true, now_);
  now_ += TaskNumbers::kReturn - absl::Milliseconds(1);
  ExpectUnavailable("for 5s after the model was restored");
  Join(1);
  now_ += absl::Milliseconds(1);
  EXPECT_EQ(*Assign(1), 2);
  numbers_.OnCommit(/*is_restored=*/true, now_);
  EXPECT_EQ(*Assign(1), 2) << "this ps knows all since the first commit";
}

TEST_F(TaskNumbersTest, AfterARestart_IndicesAreAboveThoseThatWereGiven) {
  numbers_.OnCommit(/*is_restored=*/true, now_);
  numbers_.HearOf(3);
  EXPECT_EQ(numbers_.highest(), 3);
  now_ += TaskNumbers::kReturn;
  Join(1);
  EXPECT_EQ(*Assign(7), 4);
  numbers_.HearOf(4);
  EXPECT_EQ(*Assign(8), 5) << "4 was given here";
  now_ += TaskNumbers::kReserved;
  EXPECT_EQ(*Assign(9), 4);
  numbers_.HearOf(9);
  EXPECT_EQ(*Assign(10), 10) << "who knew of more came late";
}

TEST_F(TaskNumbersTest, WithoutOneAbove_AnIndexOfAnEarlierStartIsGiven) {
  numbers_.OnCommit(/*is_restored=*/false, now_);
  numbers_.HearOf(std::numeric_limits<int32_t>::max());
  EXPECT_EQ(numbers_.highest(), kLast);
  Join(1).state = MemberState::kLost;
  Join(2);
  EXPECT_EQ(*Assign(7), 3);
  Join(5).state = MemberState::kFinished;
  EXPECT_EQ(*Assign(8), 5) << "it is known to be free";
}

TEST_F(TaskNumbersTest, WhoWaitedAndAsksNoMore_IsNotOnTheWay) {
  numbers_.OnCommit(/*is_restored=*/true, now_);
  ExpectUnavailable("after the model was restored");
  EXPECT_EQ(numbers_.Coming(members_, now_).size(), 1);
  now_ += absl::Minutes(1);
  EXPECT_EQ(numbers_.Coming(members_, now_).size(), 0);
}

TEST_F(RunningTaskNumbersTest, TheFirstFreeIndex_IsGivenFromOneOn) {
  EXPECT_EQ(*Assign(1), 1) << "0 is the chief's";
  EXPECT_EQ(*Assign(2), 2);
  Join(3);
  EXPECT_EQ(*Assign(3), 4);
}

TEST_F(RunningTaskNumbersTest, TheSameStart_HasTheSameIndex) {
  EXPECT_EQ(*Assign(7), 1);
  EXPECT_EQ(*Assign(7), 1);
  Join(3);
  EXPECT_EQ(*Assign(1003), 3) << "once it has registered, too";
}

TEST_F(RunningTaskNumbersTest,
       AWorkerThatOpensItsDataForMinutes_KeepsItsIndex) {
  EXPECT_EQ(*Assign(1), 1);
  now_ += absl::Minutes(9);
  EXPECT_EQ(*Assign(2), 2);
}

TEST_F(RunningTaskNumbersTest, AnIndexOfOneThatNeverCame_IsGivenInTheEnd) {
  EXPECT_EQ(*Assign(1), 1);
  now_ += TaskNumbers::kReserved;
  EXPECT_EQ(*Assign(2), 1);
}

TEST_F(RunningTaskNumbersTest, WithoutARestart_AFreeIndexIsGivenAgain) {
  EXPECT_EQ(*Assign(1), 1);
  EXPECT_EQ(*Assign(2), 2);
  EXPECT_EQ(numbers_.highest(), 2);
  now_ += TaskNumbers::kReserved;
  numbers_.HearOf(2);
  EXPECT_EQ(*Assign(3), 1);
}

TEST_F(RunningTaskNumbersTest, AnIndexThatAnotherCameWith_IsKeptNoLonger) {
  EXPECT_EQ(*Assign(1), 1);
  Join(1);
  EXPECT_EQ(*Assign(1), 2);
}

TEST_F(RunningTaskNumbersTest, WhoHasRegistered_KeepsItsIndexAsAMemberAlone) {
  for (int32_t i = 1; i <= kLast; ++i) {
    EXPECT_EQ(*Assign(1000 + i), i);
    Join(i);
  }
  Join(7).state = MemberState::kFinished;
  EXPECT_EQ(*Assign(1), 7);
}

TEST_F(RunningTaskNumbersTest, IndicesOfTasksThatLeft_AreGivenLast) {
  for (int32_t i = 0; i <= kLast; ++i) {
    if (i != 900) Join(i);
  }
  Join(500).state = MemberState::kLost;
  Join(700).state = MemberState::kFinished;
  Join(600).state = MemberState::kStaying;
  EXPECT_EQ(*Assign(1), 900);
  EXPECT_EQ(*Assign(2), 700) << "it has finished";
  EXPECT_EQ(*Assign(3), 500) << "it may come back";
  EXPECT_THAT(Assign(4), StatusIs(absl::StatusCode::kResourceExhausted,
                                  HasSubstr("workers 1 to 4095")));
}

TEST_F(RunningTaskNumbersTest, AnIndexOfTheManifest_IsNotFree) {
  CommitEpochRequest commit;
  *commit.add_workers()->mutable_sender() = MakeSender(1, 0);
  members_.Restore(commit);
  EXPECT_EQ(*Assign(1), 2) << "worker 1 may still be there";
}

}  // namespace
}  // namespace muster
