#include "common/base/read_file.h"

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::string WriteFile(const std::string& text) {
  const std::string path = absl::StrCat(testing::TempDir(), "/read_file_test");
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(ReadFileTest, ReadsTheWholeFile) {
  const std::string text("a\0b\r\n", 5);
  EXPECT_THAT(ReadFile(WriteFile(text)), IsOkAndHolds(text));
  EXPECT_THAT(ReadFile(WriteFile("")), IsOkAndHolds(std::string()));
}

TEST(ReadFileTest, NamesTheFileItCannotRead) {
  EXPECT_THAT(ReadFile("/nowhere/file"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("reading /nowhere/file: No such file")));
  EXPECT_THAT(ReadFile(testing::TempDir()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a regular file")));
  // Blocks for ever if it is opened like a file.
  EXPECT_THAT(ReadFile("/dev/zero"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ReadFileTest, RefusesAFileOverTheLimit) {
  const std::string path = WriteFile("12345");
  EXPECT_THAT(ReadFile(path, 5), IsOkAndHolds(std::string("12345")));
  EXPECT_THAT(ReadFile(path, 4),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("it has 5 bytes, at most 4")));
}

}  // namespace
}  // namespace muster
