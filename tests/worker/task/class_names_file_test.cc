#include "worker/task/class_names_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ClassNamesFileTest, NamesAreReadByIndexAndOthersAreNone) {
  const std::string dir = ::testing::TempDir() + "/class_names";
  std::filesystem::create_directories(dir);
  const auto write = [&dir](const std::string& text) {
    std::ofstream(dir + "/classes.json") << text;
  };
  EXPECT_THAT(ReadClassNames(dir), IsEmpty());
  write("[\"left\",\n \"the \\\"right\\\"\"]\n");
  EXPECT_THAT(ReadClassNames(dir), ElementsAre("left", "the \"right\""));
  write("[\"left\",");
  EXPECT_THAT(ReadClassNames(dir), IsEmpty());
}

}  // namespace
}  // namespace muster
