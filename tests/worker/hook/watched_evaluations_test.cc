#include "worker/hook/watched_evaluations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WatchedEvaluationsTest : public ::testing::Test {
 protected:
  static constexpr int64_t kEvery = 10;

  WatchedEvaluationsTest() {
    options_.stop = {"test_loss", /*smaller_is_better=*/true};
    options_.stop_patience = 2;
  }

  void Start(EvaluationHistory history = {}) {
    hook_ = std::make_unique<WatchedEvaluations>(
        options_, kEvery, lines_.reporter(),
        [this](absl::string_view reason, const absl::Status& failure) {
          EXPECT_THAT(failure, IsOk());
          stops_.emplace_back(reason);
        });
    EpochRecord epoch;
    epoch.evaluations = history;
    ASSERT_THAT(hook_->AfterEnter(epoch), IsOk());
  }
  void Evaluate(int64_t global_step, double loss) {
    EvaluationResult result;
    result.loss = loss;
    hook_->OnEvaluation(global_step, result);
  }

  EvaluationWatch::Options options_;
  ReportedLines lines_;
  std::vector<std::string> stops_;
  std::unique_ptr<WatchedEvaluations> hook_;
};

TEST_F(WatchedEvaluationsTest, APlateau_StopsTheJobAndIsSaid) {
  Start();
  Evaluate(10, 0.5);
  Evaluate(20, 0.25);
  Evaluate(30, 0.3);
  EXPECT_THAT(stops_, IsEmpty());
  lines_.Clear();
  Evaluate(40, 0.25);
  EXPECT_THAT(stops_, ElementsAre("plateau"));
  EXPECT_THAT(lines_.lines(),
              ElementsAre("I test_loss has not become better than 0.25 of step "
                          "20 for 2 evaluations: the training ends"));
}

TEST_F(WatchedEvaluationsTest, ABetterOne_IsSaidOnceForAFigure) {
  options_.kept = {"test_loss", /*smaller_is_better=*/true};
  Start();
  Evaluate(10, 0.5);
  Evaluate(20, 0.75);
  Evaluate(30, 0.25);
  EXPECT_THAT(lines_.lines(),
              ElementsAre("I test_loss 0.5 of step 10 is the best one so far",
                          "I test_loss 0.25 of step 30 is the best one so "
                          "far"));
}

TEST_F(WatchedEvaluationsTest, ANan_IsNeverTheBestOne) {
  Start();
  Evaluate(10, std::nan(""));
  EXPECT_THAT(lines_.lines(), IsEmpty());
}

TEST_F(WatchedEvaluationsTest, PlateauWithoutAFiniteNumber_IsSaidAsSuch) {
  Start();
  Evaluate(10, std::nan(""));
  Evaluate(20, INFINITY);
  EXPECT_THAT(lines_.lines(),
              ElementsAre("I test_loss has not been a finite number for 2 "
                          "evaluations: the training ends"));
}

// That of the end, which may be due, too, and that of another half.
TEST_F(WatchedEvaluationsTest, SecondEvaluationOfAStep_IsNotReported) {
  Start();
  Evaluate(10, 0.5);
  lines_.Clear();
  Evaluate(10, 0.5);
  EXPECT_THAT(lines_.lines(), IsEmpty());
}

// A chief that takes over evaluates what its former start may have.
TEST_F(WatchedEvaluationsTest, OneEvaluationOfEachPeriod_IsCounted) {
  Start();
  Evaluate(10, 0.5);
  Evaluate(10, 0.6);
  Evaluate(17, 0.7);
  EXPECT_EQ(hook_->history().stop().bad_evaluations(), 0);
  EXPECT_EQ(hook_->history().global_step(), 10);
  Evaluate(21, 0.7);
  EXPECT_EQ(hook_->history().stop().bad_evaluations(), 1);
}

TEST_F(WatchedEvaluationsTest, AnotherStart_CountsOn) {
  Start();
  Evaluate(10, 0.5);
  Evaluate(20, 0.6);
  Start(hook_->history());
  EXPECT_THAT(stops_, IsEmpty());
  Evaluate(30, 0.6);
  EXPECT_THAT(stops_, ElementsAre("plateau"));
}

TEST_F(WatchedEvaluationsTest, ALessPatientStart_StopsAtOnce) {
  Start();
  Evaluate(10, 0.5);
  Evaluate(20, 0.6);
  options_.stop_patience = 1;
  Start(hook_->history());
  EXPECT_THAT(stops_, ElementsAre("plateau"));
}

TEST_F(WatchedEvaluationsTest, ALowerRate_IsSaidWithItsUpdate) {
  options_ = {};
  options_.schedule = {"test_loss", /*smaller_is_better=*/true};
  options_.schedule_patience = 1;
  options_.factor = 0.1;
  Start();
  for (int64_t step = 10; step <= 50; step += 10) Evaluate(step, 0.5);
  EXPECT_THAT(
      lines_.lines(),
      ElementsAre(HasSubstr("is the best one so far"),
                  "I test_loss has not become better than 0.5 of step 10 for 2 "
                  "evaluations: learning rate times 0.1 from update 32 on",
                  HasSubstr("learning rate times 0.1 from update 52 on, times "
                            "0.01 in all")));
  EXPECT_THAT(stops_, IsEmpty());
}

}  // namespace
}  // namespace muster
