#include "ps_server/shard/duplicate_marks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

class DuplicateMarksTest : public testing::Test {
 protected:
  std::optional<int64_t> Find(int64_t step, int32_t part, int32_t parts) {
    const auto outcome = marks_.FindOutcome(worker_, step, part, parts);
    EXPECT_THAT(outcome, IsOk());
    if (!outcome.ok() || !outcome->has_value()) return std::nullopt;
    return (*outcome)->staleness;
  }

  int64_t Record(int64_t step, int32_t part, int32_t parts, int64_t staleness) {
    return marks_.Record(worker_, step, part, parts, {staleness, false})
        .staleness;
  }

  const Sender worker_ = MakeSender(0, 1);
  DuplicateMarks marks_;
};

TEST_F(DuplicateMarksTest, FindsWhatWasRecordedAndNothingElse) {
  EXPECT_EQ(Find(1, 0, 2), std::nullopt);
  EXPECT_EQ(Record(1, 0, 2, 7), 7);
  EXPECT_THAT(Find(1, 0, 2), Optional(7));
  EXPECT_EQ(Find(1, 1, 2), std::nullopt);
  EXPECT_EQ(Find(2, 0, 2), std::nullopt);
}

TEST_F(DuplicateMarksTest, AStepKeepsTheStalenessOfItsFirstPart) {
  EXPECT_EQ(Record(1, 1, 2, 7), 7);
  EXPECT_EQ(Record(1, 0, 2, 9), 7);
  EXPECT_THAT(Find(1, 0, 2), Optional(7));
}

TEST_F(DuplicateMarksTest, AStepIsLateFromItsFirstLatePartOn) {
  EXPECT_FALSE(marks_.Record(worker_, 1, 0, 3, {0, false}).late);
  EXPECT_TRUE(marks_.Record(worker_, 1, 1, 3, {1, true}).late);
  EXPECT_TRUE(marks_.Record(worker_, 1, 2, 3, {1, true}).late);
  for (const int32_t part : {0, 1, 2}) {
    const auto outcome = marks_.FindOutcome(worker_, 1, part, 3);
    ASSERT_THAT(outcome, IsOk());
    ASSERT_TRUE(outcome->has_value());
    EXPECT_TRUE((*outcome)->late);
    EXPECT_EQ((*outcome)->staleness, 0);
  }
}

TEST_F(DuplicateMarksTest, OlderStepsAreDuplicatesWithTheirOutcome) {
  for (int64_t step = 1; step <= 100; ++step) {
    Record(step, 0, 1, step * 10);
  }
  EXPECT_THAT(Find(99, 0, 1), Optional(990));
  EXPECT_THAT(Find(1, 0, 1), Optional(0)) << "too old for its outcome";
}

TEST_F(DuplicateMarksTest, AStepHasOneNumberOfParts) {
  Record(1, 0, 2, 0);
  EXPECT_THAT(marks_.FindOutcome(worker_, 1, 1, 3),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2")));
}

TEST_F(DuplicateMarksTest, CountsStepsThatStayedUnfinished) {
  Record(1, 0, 2, 0);
  Record(2, 0, 1, 0);
  EXPECT_EQ(marks_.unfinished_steps(), 1);
  Record(3, 1, 2, 0);
  marks_.Forget(worker_);
  EXPECT_EQ(marks_.unfinished_steps(), 2);
  Record(1, 0, 2, 0);
  marks_.Clear();
  EXPECT_EQ(marks_.unfinished_steps(), 3);
}

TEST_F(DuplicateMarksTest, ANewIncarnationStartsAnew) {
  Record(5, 0, 1, 0);
  const Sender restarted = MakeSender(0, 2);
  marks_.Forget(restarted);
  EXPECT_TRUE(marks_.IsNewStep(restarted, 1));
  EXPECT_THAT(marks_.Export(), IsEmpty());
}

TEST_F(DuplicateMarksTest, ExportsTheNewestStepOfWhoPushed) {
  Record(4, 2, 3, 0);
  Record(4, 0, 3, 0);
  const std::vector<DuplicateMark> exported = marks_.Export();
  ASSERT_EQ(exported.size(), 1);
  EXPECT_EQ(exported[0].step(), 4);
  EXPECT_THAT(exported[0].parts(), ElementsAre(0, 2));
  EXPECT_EQ(exported[0].sender().incarnation(), 1);
}

StepCounts MakeCounts(int64_t steps) {
  StepCounts counts;
  counts.set_steps(steps);
  return counts;
}

TEST_F(DuplicateMarksTest, StepWithAPartMissing_IsNotHeld) {
  marks_.Record(worker_, 4, 0, 2, {}, MakeCounts(14));
  EXPECT_THAT(marks_.HeldSteps(), IsEmpty());
  marks_.Record(worker_, 4, 1, 2, {}, MakeCounts(14));
  marks_.Record(worker_, 5, 1, 2, {}, MakeCounts(15));
  const std::vector<HeldStep> held = marks_.HeldSteps();
  ASSERT_EQ(held.size(), 1);
  EXPECT_EQ(held[0].step(), 4);
  EXPECT_EQ(held[0].counts().steps(), 14);
}

TEST_F(DuplicateMarksTest, HeldStep_OutlivesItsStartAndNoEpoch) {
  marks_.Record(worker_, 4, 0, 1, {}, MakeCounts(14));
  marks_.Forget(MakeSender(0, 2));
  ASSERT_EQ(marks_.HeldSteps().size(), 1);
  EXPECT_EQ(marks_.HeldSteps()[0].sender().incarnation(), 1);
  marks_.Record(MakeSender(0, 2), 1, 0, 1, {}, MakeCounts(15));
  ASSERT_EQ(marks_.HeldSteps().size(), 1);
  EXPECT_EQ(marks_.HeldSteps()[0].sender().incarnation(), 2);
  marks_.Clear();
  EXPECT_THAT(marks_.HeldSteps(), IsEmpty());
}

TEST_F(DuplicateMarksTest, StepWithoutCounts_IsNotHeld) {
  Record(4, 0, 1, 0);
  EXPECT_THAT(marks_.HeldSteps(), IsEmpty());
}

}  // namespace
}  // namespace muster
