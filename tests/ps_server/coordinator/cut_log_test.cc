#include "ps_server/coordinator/cut_log.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/row_text.h"
#include "tests/ps_server/shard/shard_requests.h"

namespace muster {
namespace {

class CutLogTest : public testing::Test {
 protected:
  // A step of task 1 and its 10 rows.
  void Count(int64_t step, uint64_t incarnation = 101) {
    Delivery delivery;
    delivery.sender = MakeSender(1, incarnation);
    delivery.step = step;
    delivery.rows = MakeLease(step * 10, 10);
    log_.Add({delivery});
  }

  std::string RowsBehind(int64_t step, uint64_t incarnation = 101) const {
    google::protobuf::RepeatedPtrField<HeldStep> counted;
    HeldStep& held = *counted.Add();
    *held.mutable_sender() = MakeSender(1, incarnation);
    held.set_step(step);
    return LeasesText(log_.RowsBehind(counted));
  }

  CutLog log_;
};

TEST_F(CutLogTest, StepsBehindTheCut_AreThoseAfterTheHeldOne) {
  Count(1);  // before the cut
  log_.Begin();
  for (const int64_t step : {2, 3, 4}) Count(step);
  EXPECT_EQ(RowsBehind(2), "30+10 40+10");
  EXPECT_EQ(RowsBehind(4), "");
  EXPECT_EQ(LeasesText(log_.RowsBehind({})), "20+10 30+10 40+10");
}

TEST_F(CutLogTest, StepsOfAStartThatWasReplaced_AreInTheCut) {
  log_.Begin();
  Count(7);
  EXPECT_EQ(RowsBehind(1, /*incarnation=*/102), "");
}

TEST_F(CutLogTest, StepsThatSomeShardBegan_AreCountedUnlessHeld) {
  google::protobuf::RepeatedPtrField<HeldStep> counted;
  HeldStep& held = *counted.Add();
  *held.mutable_sender() = MakeSender(1, 101);
  held.set_step(2);
  google::protobuf::RepeatedPtrField<HeldStep> begun = counted;
  begun[0].set_step(4);
  log_.Begin();
  for (const int64_t step : {2, 3, 4, 5}) Count(step);
  const TaskKey task = KeyOf(MakeSender(1, 101));
  auto behind = log_.CountBegunBehind(counted, begun);
  EXPECT_EQ(behind[task].rows, 20) << "steps 3 and 4";
  EXPECT_EQ(behind[task].steps, 2);
  EXPECT_EQ(log_.CountBegunBehind({}, begun)[task].rows, 30);
  EXPECT_TRUE(log_.CountBegunBehind(counted, {}).empty());
}

TEST_F(CutLogTest, AnotherCut_BeginsAnew) {
  log_.Begin();
  Count(2);
  log_.Begin();
  Count(3);
  EXPECT_EQ(RowsBehind(1), "30+10");
}

TEST_F(CutLogTest, CutThatNeverEnds_IsForgotten) {
  log_.Begin();
  log_.Add(std::vector<Delivery>(CutLog::kMaxSteps + 1));
  EXPECT_FALSE(log_.has_begun());
}

}  // namespace
}  // namespace muster
