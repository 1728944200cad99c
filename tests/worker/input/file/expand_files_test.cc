#include "worker/input/file/expand_files.h"

#include <sys/stat.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"
#include "worker/input/file/file_rows.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ExpandFilesTest : public testing::Test {
 protected:
  const std::string dir_ = MakeTempDir();
  const std::string b_ = WriteFile(dir_, "b.csv", "");
  const std::string a_ = WriteFile(dir_, "a.csv", "");
  const std::string upper_ = WriteFile(dir_, "C.csv", "");
};

TEST_F(ExpandFilesTest, SortsByBytesAndTakesEachOnce) {
  EXPECT_THAT(ExpandFiles(dir_ + "/*.csv"),
              IsOkAndHolds(ElementsAre(upper_, a_, b_)));
  EXPECT_THAT(ExpandFiles(b_ + "," + a_ + "," + dir_ + "/[ab].csv"),
              IsOkAndHolds(ElementsAre(a_, b_)));
}

TEST_F(ExpandFilesTest, TakesAFileWhateverItsName) {
  const std::string odd = WriteFile(dir_, "x,[1]*.csv", "");
  EXPECT_THAT(ExpandFiles(odd), IsOkAndHolds(ElementsAre(odd)));
}

TEST_F(ExpandFilesTest, NamesWhatIsNotThereAndItsFolder) {
  const auto names = [this](const std::string& pattern) {
    return StatusIs(absl::StatusCode::kNotFound,
                    AllOf(HasSubstr("'" + dir_ + "/" + pattern + "'"),
                          HasSubstr("in the folder '" + dir_ + "'")));
  };
  EXPECT_THAT(ExpandFiles(dir_ + "/*.tsv"), names("*.tsv"));
  EXPECT_THAT(ExpandFiles(a_ + "," + dir_ + "/none"), names("none"));
}

TEST_F(ExpandFilesTest, RefusesWhatIsNoFile) {
  const std::string fifo = dir_ + "/fifo.csv";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(ExpandFiles(dir_ + "/*.csv"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(fifo), HasSubstr("no regular file"))));
  EXPECT_THAT(ExpandFiles(dir_), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("a folder")));
  EXPECT_THAT(ExpandFiles(""), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ExpandFiles(a_ + ","),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("found an empty name")));
}

TEST(FileRowsTest, FindsTheFileOfARowPastEmptyOnes) {
  FileRows rows;
  for (const int64_t count : {0, 2, 0, 3}) rows.Add(count);
  EXPECT_EQ(rows.num_rows(), 5);
  EXPECT_EQ(rows.num_files(), 4);
  const std::vector<std::pair<size_t, int64_t>> wanted = {
      {1, 0}, {1, 1}, {3, 0}, {3, 1}, {3, 2}};
  for (int64_t row = 0; row < 5; ++row) {
    EXPECT_EQ(rows.Find(row).file, wanted[row].first) << row;
    EXPECT_EQ(rows.Find(row).row, wanted[row].second) << row;
  }
}

}  // namespace
}  // namespace muster
