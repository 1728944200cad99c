#include "worker/input/file/file_bytes.h"

#include <sys/stat.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class FileBytesTest : public testing::Test {
 protected:
  std::string Write(const std::string& content) {
    return WriteFile(dir_, "file", content);
  }

  static absl::StatusOr<std::string> Read(const FileBytes& file, int64_t offset,
                                          size_t size) {
    std::vector<uint8_t> bytes(size);
    const absl::Status status = file.ReadAt(offset, absl::MakeSpan(bytes));
    if (!status.ok()) return status;
    return std::string(bytes.begin(), bytes.end());
  }

  const std::string dir_ = MakeTempDir();
};

TEST_F(FileBytesTest, ReadsAnyPlaceOfPlainAndGzipFiles) {
  for (const std::string& content : {std::string("abcdef"), Gzip("abcdef")}) {
    absl::StatusOr<FileBytes> file = FileBytes::Open(Write(content));
    ASSERT_THAT(file, IsOk());
    EXPECT_EQ(file->size(), 6);
    EXPECT_THAT(Read(*file, 2, 3), IsOkAndHolds("cde"));
    EXPECT_THAT(Read(*file, 6, 0), IsOkAndHolds(""));
    EXPECT_THAT(Read(*file, 4, 3),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("wanted 3 bytes at 4, found 2")));
    EXPECT_THAT(Read(*file, 7, 1), StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THAT(Read(*file, INT64_MAX, 8),
                StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THAT(Read(*file, -1, 1), StatusIs(absl::StatusCode::kDataLoss));

    const FileBytes part = (*std::move(file)).Part(1, 4).Part(1, 2);
    EXPECT_THAT(Read(part, 1, 1), IsOkAndHolds("d"));
    EXPECT_THAT(Read(part, 1, 2), StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST_F(FileBytesTest, InflatesNoMoreThanIsAllowed) {
  const std::string content(300'000, 'x');
  const std::string path = Write(Gzip(content));
  const absl::StatusOr<FileBytes> whole =
      FileBytes::Open(path, static_cast<int64_t>(content.size()));
  ASSERT_THAT(whole, IsOk());
  EXPECT_THAT(Read(*whole, 0, content.size()), IsOkAndHolds(content));
  EXPECT_THAT(
      FileBytes::Open(path, static_cast<int64_t>(content.size()) - 1),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr(path), HasSubstr("more than 299999 bytes"))));
}

TEST_F(FileBytesTest, ReadsGzipOfSeveralMembersAsOne) {
  // Longer than a chunk of 64 KiB that is read of the file at once, whether a
  // member ends there or goes on; an empty one is the end of bgzip's files.
  std::string noise;
  for (uint32_t i = 0, x = 1; i < 150'000; ++i) {
    x = x * 1664525 + 1013904223;
    noise.push_back(static_cast<char>(x >> 24));
  }
  const std::string gzip = Gzip("ab") + Gzip("") + Gzip(noise) + Gzip("cd");
  const absl::StatusOr<FileBytes> file =
      FileBytes::Open(Write(gzip + Gzip("")));
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(Read(*file, 0, file->size()), IsOkAndHolds("ab" + noise + "cd"));
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += Gzip("");
  EXPECT_EQ(FileBytes::Open(Write(many + Gzip("x")))->size(), 1);
}

TEST_F(FileBytesTest, RefusesWhatFollowsGzipDataAndIsNone) {
  const std::string gzip = Gzip("ab") + Gzip("cd");
  for (const std::string& more :
       {std::string("x"), std::string(512, '\0'), std::string("\x1fPK")}) {
    EXPECT_THAT(
        FileBytes::Open(Write(gzip + more)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("gzip data")));
  }
  for (size_t size = Gzip("ab").size() + 1; size < gzip.size(); ++size) {
    EXPECT_THAT(FileBytes::Open(Write(gzip.substr(0, size))),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("gzip data is cut short")))
        << size;
  }
}

TEST_F(FileBytesTest, HoldsAllMembersOfGzipToWhatIsAllowed) {
  const std::string member = Gzip(std::string(200'000, 'x'));
  EXPECT_THAT(FileBytes::Open(Write(member + member), 399'999),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("more than 399999 bytes")));
}

TEST_F(FileBytesTest, SaysThatAFileBecameShorter) {
  const std::string path = Write("abcdef");
  const absl::StatusOr<FileBytes> file = FileBytes::Open(path);
  ASSERT_THAT(file, IsOk());
  ASSERT_EQ(truncate(path.c_str(), 3), 0);
  EXPECT_THAT(Read(*file, 0, 6),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ends at 3")));
}

TEST_F(FileBytesTest, RefusesWhatIsNoFile) {
  const std::string fifo = dir_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(FileBytes::Open(fifo),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(fifo), HasSubstr("regular"))));
  EXPECT_THAT(FileBytes::Open(dir_),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(FileBytes::Open(dir_ + "/none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none'")));
}

}  // namespace
}  // namespace muster
