#include "worker/input/file/cifar_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Pixel p of channel c is 10 * c + p % 10.
std::string Pixels() {
  std::string pixels;
  for (int c = 0; c < 3; ++c) {
    for (int p = 0; p < 1024; ++p) {
      pixels.push_back(static_cast<char>(10 * c + p % 10));
    }
  }
  return pixels;
}

class CifarFileTest : public testing::Test {
 protected:
  std::string Write(const std::string& content) {
    return WriteFile(dir_, "data.bin", content);
  }

  const std::string dir_ = MakeTempDir();
  std::vector<uint8_t> pixels_ =
      std::vector<uint8_t>(CifarFile::kPixelBytes, 255);
};

TEST_F(CifarFileTest, ReadsCifar10InBothOrders) {
  const std::string zeros(3072, '\0');
  const absl::StatusOr<CifarFile> file = CifarFile::Open(
      Write("\x03" + zeros + "\x09" + Pixels()), CifarKind::kCifar10);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->num_rows(), 2);
  EXPECT_EQ(file->num_classes(), 10);
  EXPECT_THAT(
      file->Read(0, PixelOrder::kChannelsFirst, absl::MakeSpan(pixels_)),
      IsOkAndHolds(3));
  EXPECT_THAT(pixels_, testing::Each(0));
  EXPECT_THAT(
      file->Read(1, PixelOrder::kChannelsFirst, absl::MakeSpan(pixels_)),
      IsOkAndHolds(9));
  EXPECT_EQ(std::string(pixels_.begin(), pixels_.end()), Pixels());
  EXPECT_THAT(file->Read(1, PixelOrder::kChannelsLast, absl::MakeSpan(pixels_)),
              IsOkAndHolds(9));
  EXPECT_THAT(std::vector<uint8_t>(pixels_.begin() + 36, pixels_.begin() + 42),
              testing::ElementsAre(2, 12, 22, 3, 13, 23));
  EXPECT_EQ(pixels_.back(), 23);
}

TEST_F(CifarFileTest, ReadsTheFineLabelsOfCifar100) {
  const absl::StatusOr<CifarFile> file =
      CifarFile::Open(Write(Gzip("\x13\x63" + Pixels())), CifarKind::kCifar100);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->num_classes(), 100);
  EXPECT_THAT(
      file->Read(0, PixelOrder::kChannelsFirst, absl::MakeSpan(pixels_)),
      IsOkAndHolds(99));
  EXPECT_EQ(std::string(pixels_.begin(), pixels_.end()), Pixels());
}

TEST_F(CifarFileTest, RefusesLabelsOutOfRange) {
  const absl::StatusOr<CifarFile> file =
      CifarFile::Open(Write("\x0a" + Pixels()), CifarKind::kCifar10);
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(
      file->Read(0, PixelOrder::kChannelsFirst, absl::MakeSpan(pixels_)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("row 0 of '"), HasSubstr("data.bin'"),
                     HasSubstr("from 0 to 9, found 10"))));
}

TEST_F(CifarFileTest, RefusesEveryTruncation) {
  const std::string whole = "\x01" + Pixels();
  for (size_t size = 0; size < whole.size(); size += 61) {
    EXPECT_THAT(
        CifarFile::Open(Write(whole.substr(0, size)), CifarKind::kCifar10),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("wanted rows of 3073 bytes")));
  }
  EXPECT_THAT(CifarFile::Open(Write(whole), CifarKind::kCifar100),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("wanted rows of 3074 bytes (CIFAR-100)")));
}

}  // namespace
}  // namespace muster
