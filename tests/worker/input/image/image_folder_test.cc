#include "worker/input/image/image_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"

namespace muster {

bool operator==(const ImageFile& a, const ImageFile& b) {
  return a.path == b.path && a.class_index == b.class_index;
}

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ImageFolderTest : public testing::Test {
 protected:
  std::string MakeFolder(const std::string& name) {
    const std::string path = dir_ + "/" + name;
    EXPECT_EQ(mkdir(path.c_str(), 0700), 0);
    return path;
  }

  const std::string dir_ = MakeTempDir();
};

TEST_F(ImageFolderTest, SortsClassesAndFilesByBytes) {
  const std::string cats = MakeFolder("cats");
  const std::string zebras = MakeFolder("Zebras");
  const std::string b = WriteFile(cats, "b.jpg", "");
  const std::string a = WriteFile(cats, "a.PNG", "");
  const std::string z = WriteFile(zebras, "10.JpEg", "");
  const absl::StatusOr<ImageFolder> folder = ScanImageFolder(dir_);
  ASSERT_THAT(folder, IsOk());
  EXPECT_THAT(folder->classes, ElementsAre("Zebras", "cats"));
  EXPECT_THAT(folder->files,
              ElementsAre(ImageFile{z, 0}, ImageFile{a, 1}, ImageFile{b, 1}));
  EXPECT_EQ(folder->num_others, 0);
  EXPECT_EQ(folder->example_of_others, "");
}

TEST_F(ImageFolderTest, FollowsLinks) {
  const std::string image = WriteFile(MakeFolder("cats"), "a.png", "");
  ASSERT_EQ(symlink((dir_ + "/cats").c_str(), (dir_ + "/dogs").c_str()), 0);
  ASSERT_EQ(symlink(image.c_str(), (dir_ + "/cats/b.png").c_str()), 0);
  const absl::StatusOr<ImageFolder> folder = ScanImageFolder(dir_);
  ASSERT_THAT(folder, IsOk());
  EXPECT_THAT(folder->classes, ElementsAre("cats", "dogs"));
  EXPECT_EQ(folder->files.size(), 4);
}

TEST_F(ImageFolderTest, CountsWhatIsNoImage) {
  const std::string cats = MakeFolder("cats");
  WriteFile(cats, "a.jpg", "");
  WriteFile(cats, ".b.jpg", "");
  WriteFile(cats, "c.jpg.txt", "");
  MakeFolder("cats/d.jpg");
  MakeFolder(".git");
  ASSERT_EQ(symlink("nowhere", (cats + "/e.jpg").c_str()), 0);
  WriteFile(dir_, "f.jpg", "");
  const absl::StatusOr<ImageFolder> folder = ScanImageFolder(dir_);
  ASSERT_THAT(folder, IsOk());
  EXPECT_THAT(folder->classes, ElementsAre("cats"));
  EXPECT_THAT(folder->files, ElementsAre(ImageFile{cats + "/a.jpg", 0}));
  EXPECT_EQ(folder->num_others, 6);
  EXPECT_EQ(folder->example_of_others, dir_ + "/.git");
}

TEST_F(ImageFolderTest, NamesAClassWithoutImages) {
  WriteFile(MakeFolder("cats"), "a.jpg", "");
  WriteFile(MakeFolder("dogs"), "a.gif", "");
  EXPECT_THAT(ScanImageFolder(dir_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(dir_), HasSubstr("class 'dogs'"),
                             HasSubstr("found 1 others"))));
}

TEST_F(ImageFolderTest, NamesAFolderWithoutClasses) {
  WriteFile(dir_, "a.jpg", "");
  EXPECT_THAT(ScanImageFolder(dir_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(dir_), HasSubstr("has no classes"))));
}

TEST_F(ImageFolderTest, NamesWhatIsNoFolder) {
  EXPECT_THAT(ScanImageFolder(dir_ + "/none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none'")));
  EXPECT_THAT(
      ScanImageFolder(WriteFile(dir_, "file", "")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/file'")));
}

}  // namespace
}  // namespace muster
