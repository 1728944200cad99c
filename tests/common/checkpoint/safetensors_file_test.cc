// The writer and the reader of safetensors files, on a real file system.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/safetensors_reader.h"
#include "common/checkpoint/safetensors_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SafetensorsFileTest : public ::testing::Test {
 protected:
  SafetensorsFileTest()
      : folder_(absl::StrCat(
            ::testing::TempDir(), "/safetensors_",
            ::testing::UnitTest::GetInstance()->current_test_info()->name(),
            getpid())),
        path_(folder_ + "/x.safetensors") {
    EXPECT_THAT(fs_.CreateFolder(folder_), IsOk());
  }
  ~SafetensorsFileTest() override { fs_.Remove(folder_).IgnoreError(); }

  // "counts" is written first: I64 is wider.
  void WriteExample() {
    auto writer =
        SafetensorsWriter::Create(&fs_, path_,
                                  {{"weights", FLOAT32, Shape({2, 3}), 0, 0},
                                   {"counts", INT64, Shape({2}), 0, 0}});
    ASSERT_THAT(writer, IsOk());
    const std::array<int64_t, 2> counts = {7, -1};
    const std::array<float, 6> weights = {0, 1, 2, 3, 4, -0.5};
    ASSERT_THAT((*writer)->Append(
                    {reinterpret_cast<const char*>(&counts), sizeof(counts)}),
                IsOk());
    // In two pieces that split an element.
    const char* bytes = reinterpret_cast<const char*>(&weights);
    ASSERT_THAT((*writer)->Append({bytes, 5}), IsOk());
    ASSERT_THAT((*writer)->Append({bytes + 5, sizeof(weights) - 5}), IsOk());
    ASSERT_THAT((*writer)->Finish(), IsOk());
  }

  void WriteRaw(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  void ExpectDataLoss(const std::string& bytes, const std::string& reason) {
    WriteRaw(bytes);
    EXPECT_THAT(SafetensorsReader::Open(&fs_, path_),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(reason)));
  }

  PosixFileSystem fs_;
  const std::string folder_;
  const std::string path_;
};

TEST_F(SafetensorsFileTest, ReadsWhatItWrote) {
  WriteExample();
  const auto reader = SafetensorsReader::Open(&fs_, path_);
  ASSERT_THAT(reader, IsOk());
  std::array<int64_t, 2> counts = {};
  ASSERT_THAT((*reader)->Read("counts", 0, 2, counts.data()), IsOk());
  EXPECT_THAT(counts, ElementsAre(7, -1));
  std::array<float, 3> weights = {};
  ASSERT_THAT((*reader)->Read("weights", 3, 3, weights.data()), IsOk());
  EXPECT_THAT(weights, ElementsAre(3, 4, -0.5));
}

TEST_F(SafetensorsFileTest, RefusesReadsOutsideATensor) {
  WriteExample();
  const auto reader = SafetensorsReader::Open(&fs_, path_);
  ASSERT_THAT(reader, IsOk());
  std::array<float, 6> buffer = {};
  EXPECT_THAT((*reader)->Read("weights", 4, 3, buffer.data()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT((*reader)->Read("weights", -1, 1, buffer.data()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT((*reader)->Read("weights", 7, 0, buffer.data()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT((*reader)->Read("weight", 0, 1, buffer.data()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'weight'")));
}

TEST_F(SafetensorsFileTest, WritesWhatPythonReads) {
  WriteExample();
  const std::string script = R"(
import json, struct, sys
data = open(sys.argv[1], 'rb').read()
n = struct.unpack('<Q', data[:8])[0]
assert n % 8 == 0
header = json.loads(data[8:8 + n])
assert list(header) == ['counts', 'weights'], header
w = header['weights']
assert w['dtype'] == 'F32' and w['shape'] == [2, 3], w
begin, end = w['data_offsets']
assert 8 + n + end == len(data)
values = struct.unpack('<6f', data[8 + n + begin:8 + n + end])
assert values == (0, 1, 2, 3, 4, -0.5), values
begin, end = header['counts']['data_offsets']
assert struct.unpack('<2q', data[8 + n + begin:8 + n + end]) == (7, -1)
)";
  const std::string script_path = folder_ + "/read.py";
  std::ofstream(script_path) << script;
  const std::string command =
      absl::StrCat("/usr/bin/python3 '", script_path, "' '", path_, "'");
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST_F(SafetensorsFileTest, WantsExactlyTheDeclaredBytes) {
  auto writer = SafetensorsWriter::Create(&fs_, path_,
                                          {{"a", FLOAT32, Shape({2}), 0, 0}});
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT((*writer)->Append("1234"), IsOk());
  EXPECT_THAT((*writer)->Append("12345"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT((*writer)->Finish(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("4 bytes of tensors, 8 were declared")));
}

TEST_F(SafetensorsFileTest, RefusesBrokenLengths) {
  ExpectDataLoss("", "too few");
  ExpectDataLoss("1234567", "too few");
  ExpectDataLoss(std::string("\x02\0\0\0\0\0\0\0", 8), "in a file of 8");
  ExpectDataLoss(std::string("\x03\0\0\0\0\0\0\0{}", 10), "in a file of 10");
  ExpectDataLoss(std::string("\0\0\0\0\0\0\0\0{}", 10), "start with '{'");
  ExpectDataLoss(std::string(8, '\xff') + "{}", "the format allows");
  ExpectDataLoss(std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10),
                 "the format allows");
  ExpectDataLoss(std::string("\x02\0\0\0\0\0\0\0{}x", 11), "1 after");
}

TEST_F(SafetensorsFileTest, FollowsNoLinkAndReadsNoFolder) {
  WriteExample();
  const std::string link = folder_ + "/link";
  ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
  EXPECT_FALSE(SafetensorsReader::Open(&fs_, link).ok());
  const std::string folder_link = folder_ + "_link";
  ASSERT_EQ(symlink(folder_.c_str(), folder_link.c_str()), 0);
  EXPECT_FALSE(
      SafetensorsReader::Open(&fs_, folder_link + "/x.safetensors").ok());
  EXPECT_FALSE(SafetensorsReader::Open(&fs_, folder_).ok());
  // A user's own path may be one.
  EXPECT_THAT(
      SafetensorsReader::Open(&fs_, WithoutLinks(folder_link + "/link")),
      IsOk());
  EXPECT_EQ(WithoutLinks("no/such file"), "no/such file");
  EXPECT_EQ(WithoutLinks(""), "");
  unlink(folder_link.c_str());
}

// The system's own folders have none: EINVAL.
TEST_F(SafetensorsFileTest, AFolderWithoutFsync_IsPassedOver) {
  EXPECT_THAT(fs_.SyncFolder("/proc"), IsOk());
  EXPECT_FALSE(fs_.SyncFolder("/no/such folder").ok());
}

TEST_F(SafetensorsFileTest, IsForItsOwnerOnlyAndNeverOverwritten) {
  WriteExample();
  struct stat status = {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(folder_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_THAT(SafetensorsWriter::Create(&fs_, path_, {}),
              StatusIs(absl::StatusCode::kAlreadyExists));
}

}  // namespace
}  // namespace muster
