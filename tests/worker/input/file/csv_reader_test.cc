#include "worker/input/file/csv_reader.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Records = std::vector<std::vector<std::string>>;

class CsvReaderTest : public testing::Test {
 protected:
  absl::StatusOr<Records> Read(const std::string& content,
                               char delimiter = ',') {
    absl::StatusOr<CsvReader> reader =
        CsvReader::Open(WriteFile(dir_, "data.csv", content), delimiter);
    if (!reader.ok()) return reader.status();
    Records records;
    while (true) {
      const absl::StatusOr<bool> more = reader->Next();
      if (!more.ok()) return more.status();
      if (!*more) return records;
      records.emplace_back(reader->fields().begin(), reader->fields().end());
    }
  }

  void ExpectRefused(const std::string& content, const std::string& reason) {
    EXPECT_THAT(Read(content),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("data.csv'"), HasSubstr(reason))));
  }

  const std::string dir_ = MakeTempDir();
};

TEST_F(CsvReaderTest, ReadsLinesThatEndInEitherWayOrInNone) {
  EXPECT_THAT(Read("a,b\r\n1,2\n3,4"),
              IsOkAndHolds(Records{{"a", "b"}, {"1", "2"}, {"3", "4"}}));
  EXPECT_THAT(Read("1\n"), IsOkAndHolds(Records{{"1"}}));
  EXPECT_THAT(Read("1,2\r"), IsOkAndHolds(Records{{"1", "2"}}));
  EXPECT_THAT(Read(""), IsOkAndHolds(Records{}));
}

TEST_F(CsvReaderTest, ReadsWhatStandsInQuotes) {
  EXPECT_THAT(
      Read("\"a,b\",\"line\r\nbreak\",\"say \"\"hi\"\"\"\n\"\",x\n"),
      IsOkAndHolds(Records{{"a,b", "line\r\nbreak", "say \"hi\""}, {"", "x"}}));
}

TEST_F(CsvReaderTest, KeepsEmptyFieldsAndPassesOverEmptyLines) {
  EXPECT_THAT(Read("\n,a,\r\n\r\n,\n\"\"\n\n"),
              IsOkAndHolds(Records{{"", "a", ""}, {"", ""}, {""}}));
}

TEST_F(CsvReaderTest, PassesOverAByteOrderMark) {
  EXPECT_THAT(Read("\xEF\xBB\xBFlabel\n"), IsOkAndHolds(Records{{"label"}}));
}

TEST_F(CsvReaderTest, NamesEncodingsOtherThanUtf8) {
  const auto text = [](const char* bytes, size_t size) {
    return std::string(bytes, size);
  };
  ExpectRefused(text("\xFF\xFEx\0\n\0", 6), "wanted UTF-8, found UTF-16");
  ExpectRefused(text("\xFE\xFF\0x\0\n", 6), "wanted UTF-8, found UTF-16");
  ExpectRefused(text("x\0,\0y\0\n\0", 8), "wanted UTF-8, found UTF-16");
  ExpectRefused(text("\0x\0,\0y\0\n", 8), "wanted UTF-8, found UTF-16");
  ExpectRefused(Gzip(text("\xFF\xFE\0\0x\0\0\0", 8)), "found UTF-32");
  ExpectRefused(text("\0\0\xFE\xFF\0\0\0x", 8), "found UTF-32");
}

TEST_F(CsvReaderTest, ReadsTabsAndGzip) {
  EXPECT_THAT(Read(Gzip("a,b\tc\n"), '\t'),
              IsOkAndHolds(Records{{"a,b", "c"}}));
}

TEST_F(CsvReaderTest, ReadsRecordsAcrossItsBuffer) {
  const std::string field(100'000, 'x');
  EXPECT_THAT(Read(field + ",\"" + field + "\"\n1,2\n"),
              IsOkAndHolds(Records{{field, field}, {"1", "2"}}));
}

TEST_F(CsvReaderTest, SaysWhereARecordBegins) {
  const std::string path = WriteFile(dir_, "a.csv", "\n\"x\ny\"\nz\n");
  absl::StatusOr<CsvReader> reader = CsvReader::Open(path, ',');
  ASSERT_THAT(reader, IsOk());
  ASSERT_THAT(reader->Next(), IsOkAndHolds(true));
  EXPECT_EQ(reader->Place(), "'" + path + "' line 2");
  ASSERT_THAT(reader->Next(), IsOkAndHolds(true));
  EXPECT_EQ(reader->Place(), "'" + path + "' line 4");
}

TEST_F(CsvReaderTest, RefusesQuotesThatDoNotFit) {
  ExpectRefused("a\nb\"c\n", "line 2: a quote within a field");
  ExpectRefused("\"a\"b\n", "line 1: wanted the end of the field");
  ExpectRefused("a\n\"b\nc\n",
                "line 4: a quote is never closed (the record began in line 2)");
}

TEST_F(CsvReaderTest, RefusesALoneCarriageReturn) {
  ExpectRefused("a\rb\r", "line 1: a carriage return without a line feed");
}

TEST_F(CsvReaderTest, TakesNoMoreMemoryThanARecordMayHave) {
  ExpectRefused(Gzip("\"" + std::string(CsvReader::kMaxRecordBytes + 1, 'x')),
                "more than 16 MiB");
  ExpectRefused(Gzip(std::string(CsvReader::kMaxFields + 1, ',')),
                "more than a million fields");
}

TEST_F(CsvReaderTest, NeverFailsOnATruncatedFileOtherwiseThanByStatus) {
  const std::string whole = "\xEF\xBB\xBF\"a\"\"b\",c\r\n\"d\ne\",f\r\n";
  for (size_t size = 0; size <= whole.size(); ++size) {
    const absl::StatusOr<Records> records = Read(whole.substr(0, size));
    EXPECT_TRUE(!records.ok() || records->size() <= 2) << size;
  }
  const std::string zipped = Gzip(whole);
  for (size_t size = 2; size < zipped.size(); ++size) {
    ExpectRefused(zipped.substr(0, size), "cut short");
  }
}

TEST_F(CsvReaderTest, NamesAMissingFile) {
  EXPECT_THAT(CsvReader::Open(dir_ + "/none.csv", ','),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none.csv'")));
}

}  // namespace
}  // namespace muster
