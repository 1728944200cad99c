#include "worker/input/image/image_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/ticking_clock.h"
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
  EXPECT_EQ(folder->others.count(), 0);
}

TEST_F(ImageFolderTest, Listing_ShowsItsEntries) {
  const std::string cats = MakeFolder("cats");
  for (int i = 0; i < 300; ++i) WriteFile(cats, absl::StrCat(i, ".jpg"), "");
  const TickingClock clock(absl::Seconds(10));
  ReportedLines lines;
  WorkProgress progress({lines.reporter(), nullptr, &clock});
  progress.Begin({"opening"});
  ASSERT_THAT(ScanImageFolder(dir_, &progress), IsOk());
  EXPECT_THAT(lines.lines(),
              ElementsAre("I opening: 256 rows so far, 25.6 rows/s"));
}

TEST_F(ImageFolderTest, FindsImagesAtAnyDepthInTheOrderOfTheirFolders) {
  const std::string cats = MakeFolder("cats");
  const std::string z = WriteFile(cats, "z.jpg", "");
  const std::string a = MakeFolder("cats/a");
  const std::string ab = WriteFile(MakeFolder("cats/a/b"), "1.jpg", "");
  const std::string a2 = WriteFile(a, "2.jpg", "");
  // '-' comes before '/'.
  const std::string dash = WriteFile(MakeFolder("cats/a-b"), "3.jpg", "");
  const absl::StatusOr<ImageFolder> folder = ScanImageFolder(dir_);
  ASSERT_THAT(folder, IsOk());
  EXPECT_THAT(folder->classes, ElementsAre("cats"));
  EXPECT_THAT(folder->files, ElementsAre(ImageFile{z, 0}, ImageFile{a2, 0},
                                         ImageFile{dash, 0}, ImageFile{ab, 0}));
  EXPECT_EQ(folder->others.count(), 0);
}

TEST_F(ImageFolderTest, FollowsNoLinkInALoop) {
  const std::string cats = MakeFolder("cats");
  const std::string image = WriteFile(MakeFolder("cats/a"), "1.jpg", "");
  ASSERT_EQ(symlink("..", (cats + "/a/up").c_str()), 0);
  ASSERT_EQ(symlink("itself", (cats + "/itself").c_str()), 0);
  const absl::StatusOr<ImageFolder> folder = ScanImageFolder(dir_);
  ASSERT_THAT(folder, IsOk());
  EXPECT_THAT(folder->files, ElementsAre(ImageFile{image, 0}));
  EXPECT_EQ(folder->others.ToString(),
            "2 entries that are not read (1 dangling link, 1 link in a loop): "
            "'cats/a/up', "
            "'cats/itself'");
}

TEST_F(ImageFolderTest, NeverOpensAFifo) {
  const std::string image = WriteFile(MakeFolder("cats"), "a.jpg", "");
  ASSERT_EQ(mkfifo((dir_ + "/cats/b.jpg").c_str(), 0600), 0);
  ASSERT_EQ(symlink("b.jpg", (dir_ + "/cats/c.jpg").c_str()), 0);
  const absl::StatusOr<ImageFolder> folder = ScanImageFolder(dir_);
  ASSERT_THAT(folder, IsOk());
  EXPECT_THAT(folder->files, ElementsAre(ImageFile{image, 0}));
  EXPECT_EQ(folder->others.ToString(),
            "2 entries that are not read (2 FIFO): 'cats/b.jpg', 'cats/c.jpg'");
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
  WriteFile(cats, "d.GIF", "");
  MakeFolder(".git");
  ASSERT_EQ(symlink("nowhere", (cats + "/e.jpg").c_str()), 0);
  WriteFile(dir_, "f.jpg", "");
  const absl::StatusOr<ImageFolder> folder = ScanImageFolder(dir_);
  ASSERT_THAT(folder, IsOk());
  EXPECT_THAT(folder->classes, ElementsAre("cats"));
  EXPECT_THAT(folder->files, ElementsAre(ImageFile{cats + "/a.jpg", 0}));
  EXPECT_EQ(folder->others.ToString(),
            "6 entries that are not read (1 .gif, 1 .txt, 1 beside the "
            "classes' folders, 1 "
            "dangling link, 2 hidden): '.git', 'cats/.b.jpg', 'cats/c.jpg.txt' "
            "and 3 more");
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
