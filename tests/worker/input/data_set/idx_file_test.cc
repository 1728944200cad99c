#include "worker/input/data_set/idx_file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kImages = 2051;
constexpr uint32_t kLabels = 2049;

class IdxFileTest : public testing::Test {
 protected:
  std::string Write(const std::string& content) {
    return WriteFile(dir_, "file", content);
  }

  // Expects an InvalidArgument that names the file and says `reason`.
  void ExpectRefused(const std::string& content, const std::string& reason,
                     IdxKind kind = IdxKind::kImages) {
    const std::string path = Write(content);
    EXPECT_THAT(ReadIdxFile(path, kind),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(path), HasSubstr(reason))));
  }

  const std::string dir_ = MakeTempDir();
  const std::string two_images_ =
      IdxHeader(kImages, {2, 1, 3}) + std::string("\1\2\3\4\5\6", 6);
};

TEST_F(IdxFileTest, ReadsPlainImages) {
  const absl::StatusOr<IdxFile> file =
      ReadIdxFile(Write(two_images_), IdxKind::kImages);
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(file->shape, ElementsAre(2, 1, 3));
  EXPECT_THAT(file->values, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(IdxFileTest, ReadsGzipWhateverTheNameSays) {
  const absl::StatusOr<IdxFile> file =
      ReadIdxFile(Write(Gzip(two_images_)), IdxKind::kImages);
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(file->values, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(IdxFileTest, ReadsGzipOfSeveralMembers) {
  const absl::StatusOr<IdxFile> file = ReadIdxFile(
      Write(Gzip(two_images_.substr(0, 5)) + Gzip(two_images_.substr(5))),
      IdxKind::kImages);
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(file->values, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(IdxFileTest, ReadsLabels) {
  const std::string content =
      IdxHeader(kLabels, {3}) + std::string("\7\0\xff", 3);
  const absl::StatusOr<IdxFile> file =
      ReadIdxFile(Write(content), IdxKind::kLabels);
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(file->shape, ElementsAre(3));
  EXPECT_THAT(file->values, ElementsAre(7, 0, 255));
}

TEST_F(IdxFileTest, ReadsImagesOfTwoToFourDimensions) {
  const std::vector<uint32_t> dims = {2, 1, 3, 1};
  for (size_t rank = 2; rank <= dims.size(); ++rank) {
    const std::vector<uint32_t> some(dims.begin(), dims.begin() + rank);
    const std::string content =
        IdxHeader(2048 + rank, some) + std::string(rank < 3 ? 2 : 6, '\1');
    const absl::StatusOr<IdxFile> file =
        ReadIdxFile(Write(content), IdxKind::kImages);
    ASSERT_THAT(file, IsOk());
    EXPECT_EQ(file->shape.size(), rank);
  }
  ExpectRefused(IdxHeader(2048, {}), "found 2048");
  ExpectRefused(IdxHeader(2053, {1, 1, 1, 1, 1}) + "x", "found 2053");
}

TEST_F(IdxFileTest, NamesAMissingFile) {
  EXPECT_THAT(ReadIdxFile(dir_ + "/none", IdxKind::kLabels),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("labels"), HasSubstr("/none'"))));
}

TEST_F(IdxFileTest, RefusesAFolder) {
  EXPECT_FALSE(ReadIdxFile(dir_, IdxKind::kLabels).ok());
}

// Nobody writes to it: to open it would take for ever.
TEST_F(IdxFileTest, RefusesAFifo) {
  const std::string path = dir_ + "/fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(
      ReadIdxFile(path, IdxKind::kLabels),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("/fifo'"), HasSubstr("not a regular file"))));
}

TEST_F(IdxFileTest, RefusesAnotherMagicNumber) {
  ExpectRefused(two_images_,
                "wanted magic number 2049 (labels of bytes), "
                "found 2051",
                IdxKind::kLabels);
  ExpectRefused("hello, this is text", "wanted magic number 2051");
}

TEST_F(IdxFileTest, RefusesAnEmptyFile) {
  ExpectRefused("", "cut short: wanted 4 bytes of header, found 0");
}

TEST_F(IdxFileTest, RefusesEveryTruncationOfAPlainFile) {
  for (size_t size = 0; size < two_images_.size(); ++size) {
    ExpectRefused(two_images_.substr(0, size), "cut short");
  }
}

TEST_F(IdxFileTest, RefusesEveryTruncationOfAGzipFile) {
  const std::string zipped = Gzip(two_images_);
  for (size_t size = 2; size < zipped.size(); ++size) {
    ExpectRefused(zipped.substr(0, size), "cut short");
  }
}

TEST_F(IdxFileTest, RefusesAGzipFileThatInflatesToTooLittle) {
  ExpectRefused(Gzip(two_images_.substr(0, two_images_.size() - 1)),
                "wanted 6 bytes of images, found 5");
}

TEST_F(IdxFileTest, RefusesTrailingGarbage) {
  ExpectRefused(two_images_ + "x", "too long: wanted the 22 bytes");
  ExpectRefused(Gzip(two_images_ + "x"), "too long: wanted the 22 bytes");
  ExpectRefused(Gzip(two_images_) + "x", "after the end of the gzip data");
  ExpectRefused(Gzip(two_images_) + Gzip("more"), "too long: wanted the 22");
}

TEST_F(IdxFileTest, RefusesDamagedGzipData) {
  std::string zipped = Gzip(two_images_);
  zipped[zipped.size() - 6] ^= 1;  // In the checksum.
  ExpectRefused(zipped, "damaged gzip data");
}

TEST_F(IdxFileTest, RefusesZeroAndOverflowingDimensions) {
  ExpectRefused(IdxHeader(kImages, {0, 28, 28}), "found the shape [0, 28, 28]");
  ExpectRefused(IdxHeader(kImages, {0xffffffff, 0xffffffff, 0xffffffff}),
                "found the shape");
  ExpectRefused(Gzip(IdxHeader(kImages, {0xffffffff, 0x10000, 0x10000})),
                "found the shape");
}

// The largest memory that this process ever had, in bytes.
int64_t PeakMemory() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{1024} * usage.ru_maxrss;
}

TEST_F(IdxFileTest, AllocatesNothingForAnImpossibleHeader) {
  constexpr int64_t kSlack = 16 << 20;
  const int64_t before = PeakMemory();
  const std::string header = IdxHeader(kImages, {1 << 20, 32, 32});
  ExpectRefused(header, "announces 1073741840 bytes");
  ExpectRefused(Gzip(header), "this gzip file can hold at most");
  EXPECT_LT(PeakMemory() - before, kSlack);
}

TEST_F(IdxFileTest, InflatesNoMoreThanTheHeaderAnnounces) {
  constexpr int64_t kSlack = 16 << 20;
  // 64 MiB behind a header of one image.
  const std::string bomb =
      Gzip(IdxHeader(kImages, {1, 4, 4}) + std::string(64 << 20, '\0'));
  ASSERT_LT(bomb.size(), 100000);
  const int64_t before = PeakMemory();
  ExpectRefused(bomb, "too long");
  EXPECT_LT(PeakMemory() - before, kSlack);
}

}  // namespace
}  // namespace muster
