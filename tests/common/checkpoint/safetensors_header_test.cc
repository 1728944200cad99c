#include "common/checkpoint/safetensors_header.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr char kGood[] =
    R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

void ExpectRefused(const std::string& json, int64_t data_bytes,
                   const std::string& reason) {
  EXPECT_THAT(ParseSafetensorsHeader(json, data_bytes),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(reason)))
      << json;
}

// One tensor "a" with these fields, in a file of 8 bytes of data.
void ExpectTensorRefused(const std::string& fields, const std::string& reason) {
  ExpectRefused("{\"a\":{" + fields + "}}", 8, reason);
}

TEST(SafetensorsHeaderTest, ReadsWhatTheFormatAllows) {
  EXPECT_THAT(ParseSafetensorsHeader(kGood, 8), IsOk());
  EXPECT_THAT(ParseSafetensorsHeader("{}", 0), IsOk());
  EXPECT_THAT(ParseSafetensorsHeader("{ }   ", 0), IsOk());
  const auto header = ParseSafetensorsHeader(
      R"({"__metadata__":{"k":"vä\n\u00e9\ud83d\ude00"},)"
      R"( "b" : {"shape":[], "data_offsets":[0,8], "dtype":"I64"},)"
      R"("empty":{"dtype":"F32","shape":[0,3],"data_offsets":[8,8]}})",
      8);
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->metadata.at("k"), "vä\né😀");
  ASSERT_EQ(header->entries.size(), 2u);
  EXPECT_EQ(header->entries[0].name, "b");
  EXPECT_EQ(header->entries[0].shape.rank(), 0);
  EXPECT_EQ(header->entries[1].shape.num_elements(), 0);
}

TEST(SafetensorsHeaderTest, RefusesWhatIsNotTheFormatsJson) {
  ExpectRefused("", 0, "'{'");
  ExpectRefused(" {}", 0, "start with '{'");
  ExpectRefused("[]", 0, "'{'");
  ExpectRefused("{", 0, "header 1:2");
  ExpectRefused("{} x", 0, "the end of the text");
  ExpectRefused(std::string("{}\0", 3), 0, "the end of the text");
  ExpectRefused("{\"a\":\xff}", 0, "UTF-8");
  ExpectRefused("{\"\xc0\x80\":{}}", 0, "UTF-8");
  ExpectRefused("{\"\xed\xa0\x80\":{}}", 0, "UTF-8");
  ExpectRefused(std::string(kGood).substr(0, 20), 8, "header 1:");
  ExpectRefused(R"({"a)", 0, "found the end of the text");
  ExpectRefused(R"({"\x":{}})", 0, "escape");
  ExpectRefused(R"({"\ud800":{}})", 0, "surrogate");
  ExpectRefused("{\"a\nb\":{}}", 0, "control character");
  ExpectRefused(std::string(100000, '['), 0, "'{'");
  ExpectRefused("{\"a\":" + std::string(100000, '{'), 0, "header 1:");
}

TEST(SafetensorsHeaderTest, RefusesWrongFields) {
  ExpectTensorRefused(R"("dtype":"F32","shape":[2])", "expected exactly");
  ExpectTensorRefused(R"("shape":[2],"data_offsets":[0,8])",
                      "expected exactly");
  ExpectTensorRefused(R"("dtype":"F32","data_offsets":[0,8])",
                      "expected exactly");
  ExpectTensorRefused("", "expected exactly");
  ExpectTensorRefused(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])",
                      "two data_offsets");
  ExpectTensorRefused(
      R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"more":"x")",
      "unknown field 'more'");
  ExpectTensorRefused(
      R"("dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8])",
      "'dtype' is given twice");
  ExpectTensorRefused(R"("dtype":1,"shape":[2],"data_offsets":[0,8])", "");
  ExpectTensorRefused(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])",
                      "non-negative");
  ExpectTensorRefused(R"("dtype":"F32","shape":[2.5],"data_offsets":[0,8])",
                      "");
  ExpectTensorRefused(R"("dtype":"F32","shape":[02],"data_offsets":[0,8])",
                      "a JSON value");
  ExpectTensorRefused(
      R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8])",
      "63 bits");
}

TEST(SafetensorsHeaderTest, RefusesSizesThatDoNotFit) {
  ExpectTensorRefused(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])",
                      "has 12 bytes");
  ExpectTensorRefused(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])",
                      "data_offsets");
  ExpectTensorRefused(
      R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])",
      "elements");
  ExpectTensorRefused(
      R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,8])",
      "too large");
  ExpectTensorRefused(
      R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8])",
      "rank");
}

TEST(SafetensorsHeaderTest, RefusesHolesOverlapsAndLeftovers) {
  const std::string a =
      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const auto b = [](const std::string& offsets) {
    return R"("b":{"dtype":"F32","shape":[2],"data_offsets":[)" + offsets +
           "]}";
  };
  EXPECT_THAT(ParseSafetensorsHeader("{" + b("8,16") + "," + a + "}", 16),
              IsOk());
  ExpectRefused("{" + a + "," + b("12,20") + "}", 20, "begins at byte 12");
  ExpectRefused("{" + a + "," + b("4,12") + "}", 12, "begins at byte 4");
  ExpectRefused("{" + a + "," + b("0,8") + "}", 8, "begins at byte 0");
  ExpectRefused("{" + b("8,16") + "}", 16, "begins at byte 8");
  ExpectRefused("{" + a + "}", 16, "8 bytes");
  ExpectRefused("{" + a + "}", 4, "8 bytes");
  ExpectRefused("{}", 1, "0 bytes");
  ExpectRefused("{" + a + "," + a + "}", 8, "'a' is given twice");
}

TEST(SafetensorsHeaderTest, RefusesOtherMetadataThanStrings) {
  ExpectRefused(R"({"__metadata__":{"k":1}})", 0, "expected texts");
  ExpectRefused(R"({"__metadata__":"x"})", 0, "expected an object");
  ExpectRefused(R"({"__metadata__":{"k":"1","k":"2"}})", 0, "twice");
  ExpectRefused(R"({"__metadata__":{},"__metadata__":{}})", 0, "twice");
}

TEST(SafetensorsHeaderTest, KnowsEveryDtypeOfWholeBytes) {
  const std::pair<const char*, int64_t> dtypes[] = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
      {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U64", 8},  {"U32", 4},
      {"U16", 2}, {"U8", 1},  {"BOOL", 1}};
  for (const auto& [name, bytes] : dtypes) {
    const auto header = ParseSafetensorsHeader(
        absl::StrCat(R"({"a":{"dtype":")", name,
                     R"(","shape":[3],"data_offsets":[0,)", 3 * bytes, "]}}"),
        3 * bytes);
    ASSERT_THAT(header, IsOk()) << name;
    EXPECT_EQ(header->entries[0].format_dtype, name);
    EXPECT_EQ(FormatDtypeBytes(name), bytes);
  }
  EXPECT_EQ(FormatDtypeBytes("X9"), 0);
}

TEST(SafetensorsHeaderTest, ListsATensorOfADtypeThatItDoesNotKnow) {
  const std::string last =
      R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]})";
  for (const char* dtype : {"F4", "F6_E2M3", "F8_NEW", ""}) {
    const auto header = ParseSafetensorsHeader(
        absl::StrCat(R"({"a":{"dtype":")", dtype,
                     R"(","shape":[4],"data_offsets":[0,2]},)", last, "}"),
        6);
    ASSERT_THAT(header, IsOk()) << dtype;
    ASSERT_EQ(header->entries.size(), 2u);
    EXPECT_EQ(header->entries[0].format_dtype, dtype);
    EXPECT_EQ(header->entries[0].dtype, DATA_TYPE_UNSPECIFIED);
    EXPECT_EQ(header->entries[1].name, "b");
  }
  // Its bytes are no one else's all the same.
  ExpectTensorRefused(R"("dtype":"X9","shape":[2],"data_offsets":[0,12])",
                      "12 bytes");
  ExpectTensorRefused(R"("dtype":"X9","shape":[2],"data_offsets":[8,0])",
                      "data_offsets [8, 0]");
}

TEST(SafetensorsHeaderTest, LaysOutWideTypesFirstThenByName) {
  SafetensorsEntry b{"b", FLOAT32, Shape({2}), 0, 0};
  SafetensorsEntry a{"a", FLOAT32, Shape(), 0, 0};
  SafetensorsEntry z{"z", INT64, Shape({1}), 0, 0};
  SafetensorsEntry byte{"0", UINT8, Shape({3}), 0, 0};
  const auto entries = LayOutSafetensors({byte, b, a, z});
  ASSERT_THAT(entries, IsOk());
  const std::string header = FormatSafetensorsHeader(*entries);
  EXPECT_EQ(header.size() % 8, 0u);
  const std::string json = header.substr(8);
  EXPECT_EQ(static_cast<size_t>(static_cast<unsigned char>(header[0])) +
                256 * static_cast<unsigned char>(header[1]),
            json.size());
  EXPECT_THAT(
      json,
      HasSubstr(R"({"z":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
                R"("a":{"dtype":"F32","shape":[],"data_offsets":[8,12]},)"
                R"("b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]},)"
                R"("0":{"dtype":"U8","shape":[3],"data_offsets":[20,23]}})"));
  EXPECT_THAT(ParseSafetensorsHeader(json, 23), IsOk());
}

TEST(SafetensorsHeaderTest, RefusesToWriteBadNames) {
  for (const char* name : {"", "__metadata__", "a\"b", "a\\b", "a\nb"}) {
    EXPECT_THAT(LayOutSafetensors({{name, FLOAT32, Shape({1}), 0, 0}}),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << name;
  }
  EXPECT_THAT(LayOutSafetensors({{"a", FLOAT32, Shape({1}), 0, 0},
                                 {"a", INT64, Shape({1}), 0, 0}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'a'")));
}

}  // namespace
}  // namespace muster
