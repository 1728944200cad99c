#include "ps_server/coordinator/task_numbers.h"

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

  absl::Time now_ = absl::UnixEpoch() + absl::Seconds(1000);
  Members members_;
  TaskNumbers numbers_;
};

TEST_F(TaskNumbersTest, TheFirstFreeIndex_IsGivenFromOneOn) {
  EXPECT_EQ(*Assign(1), 1) << "0 is the chief's";
  EXPECT_EQ(*Assign(2), 2);
  Join(3);
  EXPECT_EQ(*Assign(3), 4);
}

TEST_F(TaskNumbersTest, TheSameStart_HasTheSameIndex) {
  EXPECT_EQ(*Assign(7), 1);
  EXPECT_EQ(*Assign(7), 1);
  Join(3);
  EXPECT_EQ(*Assign(1003), 3) << "once it has registered, too";
}

TEST_F(TaskNumbersTest, AnIndexThatIsNotUsed_IsKeptForAWhile) {
  EXPECT_EQ(*Assign(1), 1);
  now_ += TaskNumbers::kReserved - absl::Milliseconds(1);
  EXPECT_EQ(*Assign(2), 2);
  EXPECT_EQ(numbers_.NextDeadline(), now_ + absl::Milliseconds(1));
  now_ += absl::Milliseconds(1);
  EXPECT_EQ(*Assign(3), 1);
  now_ += TaskNumbers::kReserved;
  numbers_.Tick(now_);
  EXPECT_FALSE(numbers_.IsKept());
}

TEST_F(TaskNumbersTest, IndicesOfTasksThatLeft_AreGivenLast) {
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

TEST_F(TaskNumbersTest, AnIndexOfTheManifest_IsNotFree) {
  CommitEpochRequest commit;
  *commit.add_workers()->mutable_sender() = MakeSender(1, 0);
  members_.Restore(commit);
  EXPECT_EQ(*Assign(1), 2) << "worker 1 may still be there";
}

}  // namespace
}  // namespace muster
