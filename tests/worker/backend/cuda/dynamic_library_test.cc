#include "worker/backend/cuda/dynamic_library.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kNowhere[] = "/no/such/folder";
// Whatever runs a C++ program has it.
constexpr char kCpp[] = "libstdc++.so.6";

void WriteFile(const std::string& path, const std::string& text) {
  FILE* const file = fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr) << path;
  EXPECT_EQ(fwrite(text.data(), 1, text.size(), file), text.size());
  EXPECT_EQ(fclose(file), 0);
}

TEST(DynamicLibraryTest, FindsWhatTheLoaderFinds) {
  const auto library =
      DynamicLibrary::Open(kCpp, {testing::TempDir()}, kNowhere);
  ASSERT_THAT(library, IsOk());
  const auto symbol = library->Find("__cxa_throw");
  ASSERT_THAT(symbol, IsOk());
  EXPECT_NE(*symbol, nullptr);
}

TEST(DynamicLibraryTest, NamesASymbolThatIsMissing) {
  const auto library = DynamicLibrary::Open(kCpp, {}, kNowhere);
  ASSERT_THAT(library, IsOk());
  EXPECT_THAT(library->Find("cudnnCreate"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("cudnnCreate"), HasSubstr(kCpp))));
}

TEST(DynamicLibraryTest, SaysWhereItHasLooked) {
  EXPECT_THAT(
      DynamicLibrary::Open("libmuster_has_none.so.1", {"/a", "/b"}, kNowhere),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("libmuster_has_none.so.1"), HasSubstr("/a, /b"),
                     HasSubstr("No such file"), HasSubstr(kNowhere))));
}

TEST(DynamicLibraryTest, PassesOverABrokenFile) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", kCpp);
  WriteFile(path, "no library");
  const auto library =
      DynamicLibrary::Open(kCpp, {testing::TempDir()}, kNowhere);
  EXPECT_EQ(remove(path.c_str()), 0);
  ASSERT_THAT(library, IsOk());
  EXPECT_THAT(library->Find("__cxa_throw"), IsOk());
  EXPECT_NE(library->folder(), testing::TempDir());
}

// It may want a newer system than this, where another folder has one for it.
TEST(DynamicLibraryTest, TakesTheFirstFolderWhereItLoads) {
  const std::string broken = absl::StrCat(testing::TempDir(), "/broken");
  const std::string whole = absl::StrCat(testing::TempDir(), "/whole");
  const std::string name = "libmuster_somewhere.so.1";
  ASSERT_EQ(mkdir(broken.c_str(), 0755), 0);
  ASSERT_EQ(mkdir(whole.c_str(), 0755), 0);
  WriteFile(absl::StrCat(broken, "/", name), "no library");
  const auto loaded = DynamicLibrary::Open(kCpp, {}, kNowhere);
  ASSERT_THAT(loaded, IsOk());
  const std::string file = absl::StrCat(loaded->folder(), "/", kCpp);
  const std::string link = absl::StrCat(whole, "/", name);
  ASSERT_EQ(symlink(file.c_str(), link.c_str()), 0);

  EXPECT_THAT(DynamicLibrary::Open(name, {broken, whole}, kNowhere), IsOk());
  EXPECT_THAT(DynamicLibrary::Open(name, {broken}, whole), IsOk());

  EXPECT_EQ(remove(link.c_str()), 0);
  EXPECT_EQ(remove(absl::StrCat(broken, "/", name).c_str()), 0);
  EXPECT_EQ(rmdir(broken.c_str()) + rmdir(whole.c_str()), 0);
}

TEST(DynamicLibraryTest, SaysOfEachFileWhyItDoesNotLoad) {
  const std::string name = "libmuster_broken.so.1";
  const std::string first = absl::StrCat(testing::TempDir(), "/", name);
  const std::string other = absl::StrCat(testing::TempDir(), "/other");
  ASSERT_EQ(mkdir(other.c_str(), 0700), 0);
  const std::string second = absl::StrCat(other, "/", name);
  WriteFile(first, "no library");
  WriteFile(second, "no library");
  EXPECT_THAT(DynamicLibrary::Open(name, {testing::TempDir()}, other),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(first), HasSubstr(second),
                             HasSubstr("replace the file"))));
  EXPECT_EQ(remove(first.c_str()), 0);
  EXPECT_EQ(remove(second.c_str()), 0);
  EXPECT_EQ(rmdir(other.c_str()), 0);
}

TEST(DynamicLibraryTest, KnowsItsFolder) {
  const auto library = DynamicLibrary::Open(kCpp, {}, kNowhere);
  ASSERT_THAT(library, IsOk());
  const std::string path = absl::StrCat(library->folder(), "/", kCpp);
  EXPECT_EQ(access(path.c_str(), F_OK), 0) << path;
}

TEST(DynamicLibraryTest, OpensAPartFromItsFolderOrTheLoaders) {
  const auto library = DynamicLibrary::Open(kCpp, {}, kNowhere);
  ASSERT_THAT(library, IsOk());
  EXPECT_THAT(library->OpenPart("libc.so.6"), IsOk());
  EXPECT_THAT(library->OpenPart("libmuster_has_none.so.1"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("libmuster_has_none.so.1"),
                             HasSubstr(library->folder()))));
}

TEST(DynamicLibraryTest, LooksInTheLastFolder) {
  const std::string name = "libmuster_broken.so.1";
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  WriteFile(path, "no library");
  EXPECT_THAT(DynamicLibrary::Open(name, {}, testing::TempDir()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(path)));
  EXPECT_EQ(remove(path.c_str()), 0);
}

}  // namespace
}  // namespace muster
