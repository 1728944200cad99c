#include "worker/input/data_set/data_files.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DataFilesTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, int bytes) {
    const std::string path = absl::StrCat(dir_, "/", name);
    std::ofstream(path) << std::string(bytes, 'x');
    return path;
  }
  DataFiles Describe(const std::vector<std::string>& paths, int examples = 5) {
    return DescribeDataFiles(examples, dir_, paths);
  }

  const std::string dir_ = ::testing::TempDir();
};

TEST_F(DataFilesTest, SaysWhatHasChanged) {
  const DataFiles before = Describe({Write("a", 10), Write("b", 20)});
  EXPECT_EQ(before.bytes(), 30);
  EXPECT_EQ(before.files(0).name(), "a");
  EXPECT_EQ(DescribeChange(before, Describe({dir_ + "/a", dir_ + "/b"})), "");
  EXPECT_EQ(
      DescribeChange(before, Describe({Write("a", 11), Write("c", 1)}, 6)),
      "a has 11 bytes, had 10; c is new; b is gone; there are 6 examples, were "
      "5");
  EXPECT_EQ(DescribeChange(before, Describe({Write("a", 10), dir_ + "/b"}, 0)),
            "");
}

TEST_F(DataFilesTest, NamesAFewOfMany) {
  std::vector<std::string> few;
  std::vector<std::string> many;
  for (int i = 0; i < 1010; ++i) {
    const std::string path = Write(absl::StrCat("f", i), 1);
    many.push_back(path);
    if (i < 10) few.push_back(path);
  }
  EXPECT_THAT(
      DescribeChange(Describe({few[0]}), Describe(few)),
      AllOf(HasSubstr("f1 is new; f2"), HasSubstr("; 4 other files differ")));
  const DataFiles of_many = Describe(many);
  EXPECT_EQ(of_many.files_size(), 0);
  EXPECT_EQ(DescribeChange(Describe(few), of_many),
            "they have 1010 files of 1010 bytes, had 10 of 10");
}

TEST_F(DataFilesTest, ADataSetMadeByAFormulaHasRowsAlone) {
  EXPECT_EQ(DescribeChange(Describe({}, 10), Describe({}, 10)), "");
  EXPECT_EQ(DescribeChange(Describe({}, 10), Describe({}, 20)),
            "there are 20 examples, were 10");
}

}  // namespace
}  // namespace muster
