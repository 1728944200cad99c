#include "worker/input/bad_records.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(BadRecordsTest, TellsTheFirstOnesOnceAndCountsAll) {
  ReportedLines lines;
  BadRecords bad_records(lines.reporter());
  for (int i = 0; i < 20; ++i) {
    bad_records.Add(absl::DataLossError(absl::StrCat("row ", i / 2)));
  }
  EXPECT_EQ(bad_records.count(), 20);
  ASSERT_THAT(lines.lines(), SizeIs(5));
  EXPECT_THAT(lines.lines().front(), HasSubstr("row 0"));
  EXPECT_THAT(lines.lines().back(), HasSubstr("not told"));
}

TEST(BadRecordsTest, SaysNothingOfAnEvaluationWithoutBadRows) {
  ReportedLines lines;
  const BadRecords bad_records(lines.reporter());
  bad_records.SayLeftOut(0, 10);
  EXPECT_THAT(lines.lines(), IsEmpty());
}

}  // namespace
}  // namespace muster
