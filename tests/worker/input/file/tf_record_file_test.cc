#include "worker/input/file/tf_record_file.h"

#include "common/summary/event_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/ticking_clock.h"
#include "tests/worker/input/data_set/idx_fixture.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class TfRecordFileTest : public testing::Test {
 protected:
  static std::string Records(const std::vector<std::string>& records) {
    std::string content;
    for (const std::string& record : records) AppendRecord(record, &content);
    return content;
  }

  absl::StatusOr<TfRecordFile> Open(const std::string& content) {
    return TfRecordFile::Open(WriteFile(dir_, "data.tfrecord", content));
  }

  void ExpectDamaged(const std::string& content, const std::string& place,
                     const std::string& reason) {
    EXPECT_THAT(Open(content),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("data.tfrecord'"), HasSubstr(place),
                               HasSubstr(reason))));
  }

  const std::string dir_ = MakeTempDir();
};

TEST_F(TfRecordFileTest, ReadsRecordsInAnyOrder) {
  const std::string content = Records({"first", "", std::string(99, 'x')});
  for (const std::string& bytes : {content, Gzip(content)}) {
    const absl::StatusOr<TfRecordFile> file = Open(bytes);
    ASSERT_THAT(file, IsOk());
    EXPECT_EQ(file->num_rows(), 3);
    std::string record;
    ASSERT_THAT(file->Read(2, &record), IsOk());
    EXPECT_EQ(record, std::string(99, 'x'));
    ASSERT_THAT(file->Read(1, &record), IsOk());
    EXPECT_EQ(record, "");
    ASSERT_THAT(file->Read(0, &record), IsOk());
    EXPECT_EQ(record, "first");
  }
}

TEST_F(TfRecordFileTest, Opening_ShowsItsRecords) {
  const std::vector<std::string> records(300, "record");
  const TickingClock clock(absl::Seconds(10));
  ReportedLines lines;
  WorkProgress progress({lines.reporter(), nullptr, &clock});
  progress.Begin({"opening"});
  ASSERT_THAT(
      TfRecordFile::Open(WriteFile(dir_, "data.tfrecord", Records(records)),
                         &progress),
      IsOk());
  EXPECT_THAT(lines.lines(),
              ElementsAre("I opening: 256 rows so far, 25.6 rows/s"));
}

TEST_F(TfRecordFileTest, AnEmptyFileHasNoRows) {
  EXPECT_EQ(Open("")->num_rows(), 0);
}

TEST_F(TfRecordFileTest, RefusesEveryTruncation) {
  const std::string whole = Records({"first", "second"});
  const size_t second = Records({"first"}).size();
  for (size_t size = 1; size < whole.size(); ++size) {
    if (size == second) continue;
    ExpectDamaged(whole.substr(0, size),
                  size < second ? ", at 0:" : ", at 21:", "cut short");
  }
}

TEST_F(TfRecordFileTest, FindsEveryDamagedByte) {
  const std::string whole = Records({"first", "second"});
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    const absl::StatusOr<TfRecordFile> file = Open(damaged);
    std::string record;
    absl::Status status = file.status();
    if (status.ok()) status = file->Read(at < 21 ? 0 : 1, &record);
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("wrong CRC"),
                               HasSubstr(at < 21 ? ", at 0" : ", at 21"))))
        << at;
  }
}

TEST_F(TfRecordFileTest, RefusesLengthsThatLie) {
  for (const uint64_t length : {uint64_t{1} << 20, uint64_t{1} << 40,
                                ~uint64_t{0}, ~uint64_t{0} - 15}) {
    std::string head(8, '\0');
    for (int i = 0; i < 8; ++i) head[i] = static_cast<char>(length >> 8 * i);
    const uint32_t crc = MaskedCrc32c(head);
    for (int i = 0; i < 4; ++i) head.push_back(static_cast<char>(crc >> 8 * i));
    ExpectDamaged(head + "some data", "record 0 of", "wanted");
  }
  ExpectDamaged("this is text, not records", "at 0",
                "is this a TFRecord file?");
}

TEST_F(TfRecordFileTest, NamesZlibData) {
  // zlib.compress(b"muster", level) of Python, of the levels 1, 6 and 9.
  for (const std::string head : {"\x78\x01", "\x78\x9c", "\x78\xda"}) {
    const std::string zlib = head + std::string(
                                        "\xcb\x2d\x2d\x2e\x49\x2d\x02\0\x09"
                                        "\x29\x02\xaa",
                                        12);
    EXPECT_THAT(Open(zlib + zlib),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("data.tfrecord'"),
                               HasSubstr("compressed by zlib"),
                               HasSubstr("\"GZIP\""))));
  }
  // A record of 120 bytes begins so, too; its length has its CRC.
  EXPECT_EQ(Open(Records({std::string(0x78, 'x')}))->num_rows(), 1);
  std::string damaged = Records({"first"});
  const std::string second = "\x78\x9c and all that is behind it";
  ExpectDamaged(damaged + second, "record 1 of", "wrong CRC");
}

}  // namespace
}  // namespace muster
