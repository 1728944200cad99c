#include "common/base/work_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/fake_clock.h"
#include "tests/testing/reported_lines.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class WorkProgressTest : public ::testing::Test {
 protected:
  ProgressOutput Plain() {
    ProgressOutput output;
    output.reporter = lines_.reporter();
    output.clock = &clock_;
    return output;
  }
  ProgressOutput Terminal() {
    ProgressOutput output = Plain();
    output.show_live = [this](absl::string_view text) {
      shown_.emplace_back(text);
    };
    return output;
  }
  // As many batches of 100 rows, a second each.
  void Work(int batches, WorkProgress* progress) {
    for (int i = 0; i < batches; ++i) {
      clock_.Advance(absl::Seconds(1));
      progress->Add(100);
    }
  }

  FakeClock clock_;
  ReportedLines lines_;
  std::vector<std::string> shown_;
};

TEST_F(WorkProgressTest, PlainLineComesEveryTenSeconds) {
  WorkProgress progress(Plain());
  progress.Begin({"evaluation", 10000});
  Work(25, &progress);
  progress.Finish();
  EXPECT_THAT(
      lines_.lines(),
      ElementsAre("I evaluation: 1000 of 10000 rows, 100 rows/s, 1m30s left",
                  "I evaluation: 2000 of 10000 rows, 100 rows/s, 1m20s left"));
}

TEST_F(WorkProgressTest, ShortWorkIsSilentWithoutATerminal) {
  WorkProgress progress(Plain());
  progress.Begin({"evaluation", 900});
  Work(9, &progress);
  EXPECT_THAT(lines_.lines(), IsEmpty());
}

TEST_F(WorkProgressTest, TerminalLineHasABarAndGoesAwayAtTheEnd) {
  {
    WorkProgress progress(Terminal());
    progress.Begin({"evaluation", 400});
    Work(3, &progress);
  }
  EXPECT_THAT(
      shown_,
      ElementsAre("evaluation: [=====               ] 25% 100 of 400 rows, "
                  "100 rows/s, 3s left",
                  "evaluation: [==========          ] 50% 200 of 400 rows, "
                  "100 rows/s, 2s left",
                  "evaluation: [===============     ] 75% 300 of 400 rows, "
                  "100 rows/s, 1s left",
                  ""));
  EXPECT_THAT(lines_.lines(), IsEmpty());
}

TEST_F(WorkProgressTest, TerminalShowsNothingOfASecond) {
  WorkProgress progress(Terminal());
  progress.Begin({"evaluation", 400});
  clock_.Advance(absl::Milliseconds(999));
  progress.Add(300);
  progress.Finish();
  EXPECT_THAT(shown_, IsEmpty());
}

TEST_F(WorkProgressTest, TerminalLineIsWrittenFourTimesASecond) {
  WorkProgress progress(Terminal());
  progress.Begin({"evaluation", 3000});
  for (int i = 0; i < 3000; ++i) {
    clock_.Advance(absl::Milliseconds(1));
    progress.Add(1);
  }
  EXPECT_THAT(shown_, SizeIs(9));
}

TEST_F(WorkProgressTest, UnknownTotalSaysHowMuchSoFar) {
  WorkProgress progress(Plain());
  progress.Begin({"opening of the training data"});
  Work(10, &progress);
  EXPECT_THAT(lines_.lines(), ElementsAre("I opening of the training data: "
                                          "1000 rows so far, 100 rows/s"));
}

TEST_F(WorkProgressTest, NextWorkCountsAnewButNotItsSilence) {
  WorkProgress progress(Plain());
  progress.Begin({"opening of the training data"});
  Work(9, &progress);
  progress.Begin({"labels of the training data", 1000});
  Work(1, &progress);
  EXPECT_THAT(lines_.lines(),
              ElementsAre("I labels of the training data: 100 of 1000 rows, "
                          "100 rows/s, 9s left"));
}

TEST_F(WorkProgressTest, RowsAreCountedThoughTheClockIsAskedSeldom) {
  WorkProgress progress(Plain());
  progress.Begin({"opening of the test data"});
  clock_.Advance(absl::Seconds(10));
  for (int i = 0; i < 255; ++i) progress.AddRow();
  EXPECT_THAT(lines_.lines(), IsEmpty());
  progress.AddRow();
  EXPECT_THAT(lines_.lines(), ElementsAre("I opening of the test data: 256 "
                                          "rows so far, 25.6 rows/s"));
}

TEST_F(WorkProgressTest, BytesAreShownAsMegabytes) {
  WorkProgress progress(Plain());
  progress.Begin({"export", 600'000'000, "MB", 1'000'000});
  clock_.Advance(absl::Seconds(10));
  progress.Add(200'000'000);
  EXPECT_THAT(lines_.lines(),
              ElementsAre("I export: 200 of 600 MB, 20 MB/s, 20s left"));
}

TEST_F(WorkProgressTest, WorkThatStandsStillHasNoRate) {
  WorkProgress progress(Plain());
  progress.Begin({"evaluation", 10});
  clock_.Advance(absl::Seconds(10));
  progress.Add(0);
  EXPECT_THAT(lines_.lines(), ElementsAre("I evaluation: 0 of 10 rows"));
}

TEST(FormatLeftTest, ShortensToTwoUnits) {
  EXPECT_EQ(FormatLeft(absl::Seconds(-3)), "0s");
  EXPECT_EQ(FormatLeft(absl::Seconds(59)), "59s");
  EXPECT_EQ(FormatLeft(absl::Seconds(130)), "2m10s");
  EXPECT_EQ(FormatLeft(absl::Minutes(185)), "3h05m");
}

}  // namespace
}  // namespace muster
