#include "worker/hook/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class ProgressTest : public ::testing::Test {
 protected:
  void Make(const Progress::Options& options, bool on_terminal = false) {
    ProgressOutput output;
    output.reporter = Reporter([this](Reporter::Level, absl::string_view line) {
      texts_.emplace_back(line);
    });
    if (on_terminal) {
      output.show_live = [this](absl::string_view text) {
        live_.emplace_back(text);
      };
    }
    progress_ = std::make_unique<Progress>(options, output);
    EpochRecord epoch;
    epoch.now = now_;
    ASSERT_THAT(progress_->AfterEnter(epoch), IsOk());
  }
  void Step(absl::Duration length, bool dropped = false,
            absl::Duration read = absl::ZeroDuration()) {
    now_ += length;
    StepRecord step;
    step.now = now_;
    step.global_step = ++global_step_;
    step.loss = 0.213;
    step.has_loss = has_loss_;
    step.examples = 128;
    step.staleness = 1;
    step.dropped = dropped;
    step.times.read_begun = now_ - length;
    step.times.read = step.times.read_begun + read;
    ASSERT_THAT(progress_->AfterStep(step), IsOk());
  }

  std::unique_ptr<Progress> progress_;
  std::vector<std::string> texts_;
  std::vector<std::string> live_;
  absl::Time now_ = absl::UnixEpoch();
  int64_t global_step_ = 0;
  bool has_loss_ = true;
};

TEST_F(ProgressTest, PlainLineComesEveryPeriod) {
  Progress::Options options;
  options.target_step = 150;
  Make(options);
  for (int i = 0; i < 25; ++i) Step(absl::Seconds(1));
  EXPECT_THAT(texts_,
              ElementsAre("step=10 loss=0.213 steps_per_s=1 examples_per_s=128 "
                          "staleness=1.0 left=2m20s",
                          "step=20 loss=0.213 steps_per_s=1 examples_per_s=128 "
                          "staleness=1.0 left=2m10s"));
}

TEST_F(ProgressTest, StepsWithoutALoss_HaveNoneInTheLine) {
  has_loss_ = false;
  Make(Progress::Options());
  for (int i = 0; i < 10; ++i) Step(absl::Seconds(1));
  EXPECT_THAT(texts_, ElementsAre(StartsWith("step=10 steps_per_s=1 ")));
}

TEST_F(ProgressTest, RatesAreNoPowersOfTen) {
  Make(Progress::Options());
  for (int i = 0; i < 20000; ++i) Step(absl::Microseconds(500));
  EXPECT_THAT(
      texts_,
      ElementsAre(HasSubstr(" steps_per_s=2000 examples_per_s=256000 ")));
}

TEST_F(ProgressTest, CountsTheDroppedStepsOfThisProcess) {
  Make(Progress::Options());
  for (int i = 0; i < 20; ++i) Step(absl::Seconds(1), /*dropped=*/i < 12);
  EXPECT_THAT(texts_, ElementsAre(HasSubstr(" dropped_steps=10"),
                                  HasSubstr(" dropped_steps=12")));
}

TEST_F(ProgressTest, SaysThatStepsWaitForTheirRowsIfTheyDo) {
  Make(Progress::Options());
  for (int i = 0; i < 30; ++i) {
    const int percent = i < 10 ? 34 : i < 20 ? 5 : 4;
    Step(absl::Seconds(1), /*dropped=*/false, absl::Milliseconds(10 * percent));
  }
  EXPECT_THAT(texts_, ElementsAre(HasSubstr(" input_wait=34%"),
                                  HasSubstr(" input_wait=5%"),
                                  Not(HasSubstr("input_wait"))));
}

TEST_F(ProgressTest, CountsTheBadRecordsOnceThereAreAny) {
  Progress::Options options;
  int64_t bad = 0;
  options.bad_records = [&bad] { return bad; };
  Make(options);
  for (int i = 0; i < 10; ++i) Step(absl::Seconds(1));
  bad = 3;
  for (int i = 0; i < 10; ++i) Step(absl::Seconds(1));
  EXPECT_THAT(texts_, ElementsAre(Not(HasSubstr("bad_records")),
                                  HasSubstr(" bad_records=3")));
}

TEST_F(ProgressTest, LastStepsAreShownAtTheEnd) {
  Make(Progress::Options());
  Step(absl::Seconds(1));
  EXPECT_THAT(texts_, IsEmpty());
  ASSERT_THAT(progress_->AtEnd(EndRecord()), IsOk());
  EXPECT_THAT(texts_, ElementsAre(StartsWith("step=1 ")));
}

TEST_F(ProgressTest, TerminalShowsALiveLineAndKeepsTheLast) {
  Make(Progress::Options(), /*on_terminal=*/true);
  Step(absl::Milliseconds(500));
  Step(absl::Milliseconds(500));
  EXPECT_THAT(live_, ElementsAre(StartsWith("step=1 "), StartsWith("step=2 ")));
  EXPECT_THAT(texts_, IsEmpty());
  ASSERT_THAT(progress_->AtEnd(EndRecord()), IsOk());
  EXPECT_THAT(texts_, ElementsAre(live_.back()));
}

}  // namespace
}  // namespace muster
