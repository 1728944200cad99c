#include "worker/input/file/npy_file.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"
#include "tests/worker/input/file/npy_fixture.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class NpyFileTest : public testing::Test {
 protected:
  absl::StatusOr<NpyFile> Open(const std::string& content) {
    return NpyFile::Open(WriteFile(dir_, "data.npy", content));
  }

  void ExpectRefused(const std::string& content, const std::string& reason) {
    EXPECT_THAT(Open(content),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("data.npy'"), HasSubstr(reason))));
  }

  // All values of `file`, as T.
  template <typename T>
  static std::vector<T> Values(const absl::StatusOr<NpyFile>& file) {
    if (!file.ok()) return {};
    std::vector<T> values(file->num_rows() * file->row_values());
    const absl::Status status =
        file->ReadRows(0, file->num_rows(), absl::MakeSpan(values));
    if (!status.ok()) values.clear();
    return values;
  }

  const std::string dir_ = MakeTempDir();
  const std::string floats_ =
      Npy(NpyText("<f4", "(3, 2)"), RawBytes<float>({1, 2, 3, 4, 5, 0.1f}));
};

TEST_F(NpyFileTest, ReadsRowsOfAPlainAndAGzipFile) {
  for (const std::string& content : {floats_, Gzip(floats_)}) {
    const absl::StatusOr<NpyFile> file = Open(content);
    ASSERT_THAT(file, IsOk());
    EXPECT_THAT(file->shape(), ElementsAre(3, 2));
    EXPECT_EQ(file->row_values(), 2);
    std::vector<float> rows(4);
    ASSERT_THAT(file->ReadRows(1, 2, absl::MakeSpan(rows)), IsOk());
    EXPECT_THAT(rows, ElementsAre(3, 4, 5, 0.1f));
  }
}

TEST_F(NpyFileTest, ReadsAllVersionsAndOrdersOfKeys) {
  const std::string elements = RawBytes<float>({7, 8});
  EXPECT_THAT(Values<float>(Open(Npy(NpyText("<f4", "(2,)"), elements, 2))),
              ElementsAre(7, 8));
  EXPECT_THAT(Values<float>(Open(Npy(NpyText("<f4", "(2,)"), elements, 3))),
              ElementsAre(7, 8));
  EXPECT_THAT(Values<float>(Open(Npy("{\"shape\":(1,2),'fortran_order':False,"
                                     "'descr':'<f4'}",
                                     elements))),
              ElementsAre(7, 8));
}

TEST_F(NpyFileTest, ReadsEveryType) {
  const auto open = [this](const std::string& type, const std::string& bytes) {
    return Open(Npy(NpyText(type, "(2,)"), bytes));
  };
  EXPECT_THAT(Values<float>(open("<f8", RawBytes<double>({0.1, -2}))),
              ElementsAre(0.1f, -2));
  EXPECT_THAT(Values<float>(open("|u1", "\x01\xff")), ElementsAre(1, 255));
  EXPECT_THAT(Values<float>(open("|b1", std::string("\0\x02", 2))),
              ElementsAre(0, 1));
  EXPECT_THAT(Values<int64_t>(open("|b1", std::string("\0\x02", 2))),
              ElementsAre(0, 1));
  EXPECT_THAT(Values<int64_t>(open("|i1", "\x01\xff")), ElementsAre(1, -1));
  EXPECT_THAT(Values<int64_t>(open("<i2", RawBytes<int16_t>({3, -300}))),
              ElementsAre(3, -300));
  EXPECT_THAT(Values<int64_t>(open("<i4", RawBytes<int32_t>({3, -70000}))),
              ElementsAre(3, -70000));
  EXPECT_THAT(
      Values<int64_t>(open("<i8", RawBytes<int64_t>({INT64_MIN, INT64_MAX}))),
      ElementsAre(INT64_MIN, INT64_MAX));
  EXPECT_THAT(Values<int64_t>(open("<u2", RawBytes<uint16_t>({3, 65535}))),
              ElementsAre(3, 65535));
  EXPECT_THAT(Values<int64_t>(open("<u4", RawBytes<uint32_t>({3, 1u << 31}))),
              ElementsAre(3, int64_t{1} << 31));
  EXPECT_THAT(Values<float>(open("<u8", RawBytes<uint64_t>({3, 1ull << 63}))),
              ElementsAre(3, 9223372036854775808.0f));
}

// The elements of `numpy.asfortranarray(numpy.arange(24).reshape(2, 3, 4))`.
std::vector<int> FortranOrder() {
  std::vector<int> elements;
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) elements.push_back(12 * i + 4 * j + k);
    }
  }
  return elements;
}

TEST_F(NpyFileTest, ReadsRowsOfFortranOrder) {
  const std::string matrix = Npy(NpyText("<f4", "(3, 2)", "True"),
                                 RawBytes<float>({1, 3, 5, 2, 4, 0.1f}));
  for (const std::string& content : {matrix, Gzip(matrix)}) {
    const absl::StatusOr<NpyFile> file = Open(content);
    ASSERT_THAT(file, IsOk());
    EXPECT_THAT(Values<float>(file), ElementsAre(1, 2, 3, 4, 5, 0.1f));
    std::vector<float> row(2);
    ASSERT_THAT(file->ReadRows(1, 1, absl::MakeSpan(row)), IsOk());
    EXPECT_THAT(row, ElementsAre(3, 4));
  }
  EXPECT_THAT(Values<float>(Open(Npy(NpyText("<f4", "(2,)", "True"),
                                     RawBytes<float>({1, 2})))),
              ElementsAre(1, 2));
}

template <typename T>
std::string FortranFile(const std::string& type) {
  const std::vector<int> order = FortranOrder();
  return Npy(NpyText(type, "(2, 3, 4)", "True"),
             RawBytes(std::vector<T>(order.begin(), order.end())));
}

TEST_F(NpyFileTest, ReadsFortranOrderOfAnyShapeAndSize) {
  std::vector<int64_t> wanted(24);
  for (int i = 0; i < 24; ++i) wanted[i] = i;
  EXPECT_EQ(Values<int64_t>(Open(FortranFile<int8_t>("|i1"))), wanted);
  EXPECT_EQ(Values<int64_t>(Open(FortranFile<int16_t>("<i2"))), wanted);
  EXPECT_EQ(Values<int64_t>(Open(FortranFile<int32_t>("<i4"))), wanted);
  EXPECT_EQ(Values<int64_t>(Open(FortranFile<int64_t>("<i8"))), wanted);
  std::vector<uint8_t> row(12);
  ASSERT_THAT(
      Open(FortranFile<uint8_t>("|u1"))->ReadBytes(1, absl::MakeSpan(row)),
      IsOk());
  EXPECT_EQ(row, std::vector<uint8_t>(wanted.begin() + 12, wanted.end()));
}

TEST_F(NpyFileTest, ReadsFortranOrderBeyondAChunk) {
  constexpr int kRows = 100'003;
  std::vector<double> columns;
  for (int j = 0; j < 3; ++j) {
    for (int i = 0; i < kRows; ++i) columns.push_back(3.0 * i + j);
  }
  const std::vector<float> values = Values<float>(
      Open(Npy(NpyText("<f8", "(100003, 3)", "True"), RawBytes(columns))));
  ASSERT_EQ(values.size(), 3 * kRows);
  for (int i = 0; i < 3 * kRows; ++i) ASSERT_EQ(values[i], i);
}

TEST_F(NpyFileTest, RefusesNumbersThatAreNotFinite) {
  const auto expect = [this](const std::string& content,
                             const std::string& reason) {
    const absl::StatusOr<NpyFile> file = Open(content);
    ASSERT_THAT(file, IsOk());
    std::vector<float> rows(file->num_rows() * file->row_values());
    EXPECT_THAT(file->ReadRows(0, file->num_rows(), absl::MakeSpan(rows)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("data.npy': "), HasSubstr(reason))));
    EXPECT_THAT(
        file->ReadRows(0, 1, absl::MakeSpan(rows).first(file->row_values())),
        IsOk());
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  expect(Npy(NpyText("<f8", "(2, 2)"), RawBytes<double>({1, 3e38, 0, 1e300})),
         "column 1: wanted a finite number, found 1e+300");
  expect(Npy(NpyText("<f8", "(2,)"), RawBytes<double>({1, nan})),
         "reading row 1 of");
  expect(Npy(NpyText("<f4", "(2, 1, 2)"), RawBytes<float>({1, 1, -inf, 1})),
         "column 0, 0: wanted a finite number, found -inf");
  expect(
      Npy(NpyText("<f8", "(2, 2)", "True"), RawBytes<double>({1, 2, 3, -1e40})),
      "column 1: wanted a finite number, found -1e+40");
}

TEST_F(NpyFileTest, RefusesToReadIntegersThatAreNone) {
  std::vector<int64_t> values(6);
  EXPECT_THAT(Open(floats_)->ReadRows(0, 3, absl::MakeSpan(values)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("wanted integers, found <f4")));
  const std::string large =
      Npy(NpyText("<u8", "(1,)"), RawBytes<uint64_t>({1ull << 63}));
  values.resize(1);
  EXPECT_THAT(Open(large)->ReadRows(0, 1, absl::MakeSpan(values)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("found 9223372036854775808")));
}

TEST_F(NpyFileTest, ReadsRowsLongerThanAChunk) {
  std::vector<uint8_t> bytes(100'000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = i * 7 % 251;
  const absl::StatusOr<NpyFile> file =
      Open(Npy(NpyText("|u1", "(2, 50000)"), RawBytes(bytes)));
  ASSERT_THAT(file, IsOk());
  std::vector<float> row(50'000);
  ASSERT_THAT(file->ReadRows(1, 1, absl::MakeSpan(row)), IsOk());
  EXPECT_EQ(row, std::vector<float>(bytes.begin() + 50'000, bytes.end()));
}

TEST_F(NpyFileTest, RefusesEveryTruncation) {
  for (int major = 1; major <= 3; ++major) {
    const std::string whole =
        Npy(NpyText("<i4", "(2, 1)"), RawBytes<int32_t>({1, 2}), major);
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_THAT(Open(whole.substr(0, size)),
                  StatusIs(absl::StatusCode::kInvalidArgument))
          << size;
    }
    ExpectRefused(whole + "x", "too long: its header announces 8 bytes");
  }
}

TEST_F(NpyFileTest, RefusesHeadersThatLie) {
  const auto shape = [](const std::string& text) {
    return Npy(NpyText("<f4", text), "1234");
  };
  ExpectRefused(shape("(2,)"), "cut short: its header announces 8 bytes");
  ExpectRefused(shape("(4294967296, 4294967296)"), "cut short");
  ExpectRefused(shape("(4611686018427387905,)"), "cut short");
  ExpectRefused(shape("(99999999999999999999,)"), "wanted a dimension");
  ExpectRefused(shape("(-1,)"), "wanted a dimension");
  ExpectRefused(shape("(0, 4)"), "wanted rows of values");
  ExpectRefused(shape("()"), "wanted rows of values");
  ExpectRefused(
      std::string("\x93NUMPY\x02\0", 8) + Little(1u << 30, 4) + "{}",
      "wanted a header of at most 65536 bytes, found one of 1073741824");
}

TEST_F(NpyFileTest, RefusesByNameWhatIsNotRead) {
  ExpectRefused(Npy(NpyText(">f4", "(1,)"), "1234"),
                "the type '>f4' is not read; wanted <f4, <f8");
  ExpectRefused(Npy(NpyText("|O", "(1,)"), "1234"), "the type '|O'");
  ExpectRefused(Npy("{'descr': [('a', '<f4')], 'fortran_order': False, "
                    "'shape': (1,), }",
                    "1234"),
                "arrays of records");
  ExpectRefused(Npy(NpyText("<f4", "(1,)"), "1234", 4), "found 4.0");
  ExpectRefused("PK\3\4, and more", "not an npy file");
}

TEST_F(NpyFileTest, RefusesDamagedHeaders) {
  ExpectRefused(Npy("[]", ""), "wanted '{'");
  ExpectRefused(Npy("{'descr': '<f4', 'shape': (1,)}", "1234"),
                "wanted descr, fortran_order and shape");
  ExpectRefused(Npy("{'descr': '<f4', 'descr': '<f4'}", "1234"),
                "unknown or repeated key 'descr'");
  ExpectRefused(Npy("{'x': 1}", ""), "unknown or repeated key 'x'");
  ExpectRefused(Npy(NpyText("<f4", "(1,)") + "x", "1234"), "wanted the end");
  // Every byte of a header, replaced: no way to end but a status.
  for (size_t at = 0; at < floats_.size() - 24; ++at) {
    for (const char byte : {'\0', '\xff', '(', '\'', '9'}) {
      std::string content = floats_;
      content[at] = byte;
      if (content == floats_) continue;
      const absl::StatusOr<NpyFile> file = Open(content);
      EXPECT_TRUE(!file.ok() || file->num_rows() > 0) << at;
    }
  }
}

}  // namespace
}  // namespace muster
