#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/ticking_clock.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Two features: 1, 3 and 0, 4, of classes 0 and 2.
constexpr char kRows[] = "x,y,label\n1,0,0\n3,4,2\n";

std::string WriteTraining(const std::string& rows) {
  const std::string dir = testing::TempDir();
  std::ofstream(dir + "/train.csv") << rows;
  const std::string path = dir + "/training.textproto";
  std::ofstream(path) << absl::StrCat(R"(
    model {
      name: "tiny"
      input_shape: [2]
      layer { name: "logits" type: "dense" attr { name: "units" i: 3 } }
      layer { name: "loss" type: "softmax_cross_entropy" }
    }
    input { type: "csv" batch_size: 1 dir: ")",
                                      dir, R"(" }
    optimizer { name: "sgd" }
    stop { steps: 4 }
  )");
  return path;
}

TEST(DataStatsTest, PrintsSizeClassesMeanAndSpread) {
  const VerbResult result =
      RunVerb({"data", "stats", "--training=" + WriteTraining(kRows)}, nullptr);
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  // 1, 0, 3, 4: mean 2, variance (1 + 4 + 1 + 4) / 4.
  EXPECT_THAT(result.out, AllOf(HasSubstr("2 examples of [2] in 3 classes"),
                                HasSubstr("rows of each class: 1, 0, 1\n"),
                                HasSubstr("name: \"mean\" s: \"2\""),
                                HasSubstr("name: \"std\" s: \"1.58114\"")));
}

TEST(DataStatsTest, MeasuresTheTrainingHalfThatTestFractionLeaves) {
  const VerbResult result =
      RunVerb({"data", "stats", "--training=" + WriteTraining(kRows),
               "--set=input.test_fraction=0.5", "--set=seed=5"},
              nullptr);
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("1 examples of [2] in 3 classes"),
                    HasSubstr("0.5: 1 of 2 rows are the training half\n")));
}

TEST(DataStatsTest, LeavesBadRowsOutIfTheTrainingDoes) {
  const std::string training = WriteTraining(std::string(kRows) + "7\n");
  const VerbResult result = RunVerb({"data", "stats", "--training=" + training,
                                     "--set=input.on_bad_record=SKIP"},
                                    nullptr);
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out, AllOf(HasSubstr("name: \"mean\" s: \"2\""),
                                HasSubstr("1 bad rows are left out\n")));
}

TEST(DataStatsTest, LongRun_ShowsItsRows) {
  std::string rows = kRows;
  for (int i = 0; i < 298; ++i) rows += "1,0,0\n";
  const TickingClock clock(absl::Seconds(10));
  ReportedLines lines;
  RunVerb({"data", "stats", "--training=" + WriteTraining(rows)}, nullptr,
          {lines.reporter(), nullptr, &clock});
  EXPECT_THAT(
      lines.lines(),
      AllOf(Contains(StartsWith("I opening of the training data: 256 rows")),
            Contains(StartsWith("I data stats: 256 of 300 rows, "))));
}

TEST(DataStatsTest, NamesWhatIsWrongWithTheData) {
  const VerbResult result = RunVerb(
      {"data", "stats", "--training=" + WriteTraining("x,y,label\n1,0\n")},
      nullptr);
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, AllOf(HasSubstr("train.csv"), HasSubstr("line 2")));
  EXPECT_THAT(RunVerb({"data", "stats"}, nullptr).error,
              HasSubstr("--training is missing"));
}

}  // namespace
}  // namespace muster
