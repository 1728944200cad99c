#include "common/checkpoint/float_tensor.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class FloatTensorTest : public ::testing::Test {
 protected:
  FloatTensorTest() { EXPECT_THAT(fs_.CreateFolder("root/d"), IsOk()); }

  // Reads tensor "a" of `count` elements from a file with these bytes.
  absl::StatusOr<std::vector<float>> Read(const std::string& dtype,
                                          size_t count,
                                          const std::string& data) {
    std::string json =
        absl::StrCat(R"({"a":{"dtype":")", dtype, R"(","shape":[)", count,
                     R"(],"data_offsets":[0,)", data.size(), "]}}");
    std::string prefix(8, '\0');
    prefix[0] = static_cast<char>(json.size());
    fs_.SetContents("root/d/f", prefix + json + data);
    const auto reader = SafetensorsReader::Open(&fs_, "root/d/f");
    if (!reader.ok()) return reader.status();
    std::vector<float> values(count);
    const absl::Status status =
        ReadFloats(**reader, "a", absl::MakeSpan(values));
    if (!status.ok()) return status;
    return values;
  }

  FakeFileSystem fs_{"root"};
};

TEST_F(FloatTensorTest, ReadsF32AsItIs) {
  EXPECT_THAT(Read("F32", 3, Bytes<float>({1.5f, -0.0f, 3e38f})),
              IsOkAndHolds(ElementsAre(1.5f, -0.0f, 3e38f)));
}

TEST_F(FloatTensorTest, RoundsF64ToNearest) {
  EXPECT_THAT(Read("F64", 3, Bytes<double>({0.1, 1e-60, -1.0 / 3})),
              IsOkAndHolds(ElementsAre(0.1f, 0.0f, -1.0f / 3)));
}

TEST_F(FloatTensorTest, ReadsEveryFiniteHalfExactly) {
  // IEEE 754: one, the largest, the least normal, the least of all, minus two.
  EXPECT_THAT(
      Read("F16", 5, Bytes<uint16_t>({0x3c00, 0x7bff, 0x0400, 0x0001, 0xc000})),
      IsOkAndHolds(ElementsAre(1.0f, 65504.0f, 0x1p-14f, 0x1p-24f, -2.0f)));
}

TEST_F(FloatTensorTest, ReadsBfloatExactly) {
  EXPECT_THAT(Read("BF16", 3, Bytes<uint16_t>({0x3f80, 0xc049, 0x0001})),
              IsOkAndHolds(ElementsAre(1.0f, -3.140625f, 0x1p-133f)));
}

TEST_F(FloatTensorTest, ReadsMoreThanOnePiece) {
  std::vector<float> values(600'000);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i);
  }
  EXPECT_THAT(Read("F32", values.size(), Bytes(values)), IsOkAndHolds(values));
}

TEST_F(FloatTensorTest, RefusesOtherDtypesByName) {
  EXPECT_THAT(Read("I32", 1, Bytes<int32_t>({1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'a'"), HasSubstr("I32"))));
  EXPECT_TRUE(IsFloatDtype("BF16"));
  EXPECT_FALSE(IsFloatDtype("BOOL"));
}

TEST_F(FloatTensorTest, RefusesValuesThatAreNotFinite) {
  const auto refused =
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("'a'"), HasSubstr("element 1")));
  EXPECT_THAT(Read("F16", 2, Bytes<uint16_t>({0, 0x7c00})), refused);
  EXPECT_THAT(Read("F16", 2, Bytes<uint16_t>({0, 0x7e00})), refused);
  EXPECT_THAT(Read("BF16", 2, Bytes<uint16_t>({0, 0x7fc0})), refused);
  EXPECT_THAT(Read("F64", 2, Bytes<double>({0, 1e300})), refused);
}

}  // namespace
}  // namespace muster
