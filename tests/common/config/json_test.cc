#include "common/config/json.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::string StringOf(const std::string& json) {
  const auto value = ParseJson(json);
  EXPECT_THAT(value, IsOk());
  return value.ok() ? value->text : "";
}

TEST(JsonTest, ParsesEveryKind) {
  const auto value = ParseJson(
      R"( {"a": [1, -2.5e3, "s"], "b": {"c": null}, "d": true, "e": []} )");
  ASSERT_THAT(value, IsOk());
  EXPECT_EQ(value->kind, JsonValue::Kind::kObject);
  ASSERT_NE(value->Find("a"), nullptr);
  EXPECT_EQ(value->Find("a")->items[1].text, "-2.5e3");
  EXPECT_EQ(value->Find("a")->items[1].kind, JsonValue::Kind::kNumber);
  EXPECT_EQ(value->Find("b")->Find("c")->kind, JsonValue::Kind::kNull);
  EXPECT_TRUE(value->Find("d")->boolean);
  EXPECT_TRUE(value->Find("e")->items.empty());
  EXPECT_EQ(value->Find("z"), nullptr);
}

TEST(JsonTest, RemembersPlaces) {
  const auto value = ParseJson("{\n  \"a\": 1,\n  \"b\":\n    2}");
  ASSERT_THAT(value, IsOk());
  EXPECT_EQ(value->Find("a")->line, 2);
  EXPECT_EQ(value->Find("a")->column, 8);
  EXPECT_EQ(value->Find("b")->line, 4);
  EXPECT_EQ(value->Find("b")->column, 5);
}

TEST(JsonTest, DecodesEscapes) {
  EXPECT_EQ(StringOf(R"("a\n\t\"\\\/")"), "a\n\t\"\\/");
  EXPECT_EQ(StringOf(R"("\u0041\u00e9\u20ac")"), "A\xc3\xa9\xe2\x82\xac");
  EXPECT_EQ(StringOf(R"("\ud83d\ude42")"), "\xf0\x9f\x99\x82");
}

TEST(JsonTest, RefusesWhatIsNoJson) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[",
                           "\"",
                           "{]",
                           "[}",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{a: 1}",
                           "{'a': 1}",
                           "[1,]",
                           "[,1]",
                           "{\"a\": 1,}",
                           "1 2",
                           "tru",
                           "nul",
                           "+1",
                           ".5",
                           "1.",
                           "0x10",
                           "inf",
                           "nan",
                           "-",
                           "1e",
                           "// c\n1",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u12x4\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\\ud800\\u0041\"",
                           "\"a\nb\"",
                           "\"\\"}) {
    EXPECT_THAT(ParseJson(text), StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
}

TEST(JsonTest, RefusesARepeatedKeyAtItsPlace) {
  EXPECT_THAT(ParseJson("{\"a\": 1,\n  \"a\": 2}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "2:3: the key 'a' is given twice"));
}

TEST(JsonTest, LimitsDepthAndSize) {
  const std::string deep(32, '[');
  EXPECT_THAT(ParseJson(deep + std::string(32, ']')), IsOk());
  EXPECT_THAT(ParseJson(std::string(100000, '[')),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("nested deeper than 32")));
  EXPECT_THAT(ParseJson(absl::StrCat("\"", std::string(1 << 20, 'a'), "\"")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("at most 1048576")));
}

TEST(JsonTest, EveryPrefixOfADocumentEndsInAStatus) {
  const std::string document =
      R"({"cluster": {"ps": ["h:1"], "w": {"0": "x\u00e9\n"}}, "t": -1.5e2})";
  for (size_t length = 0; length < document.size(); ++length) {
    EXPECT_FALSE(ParseJson(document.substr(0, length)).ok()) << length;
  }
  EXPECT_THAT(ParseJson(document), IsOk());
}

TEST(JsonTest, ANumberWithALeadingZeroAndHalfASurrogate_AreNoJson) {
  for (const char* text : {"01", "-01", "[00]", "[01.5]"}) {
    EXPECT_FALSE(ParseJson(text).ok()) << text;
  }
  for (const char* text : {"0", "-0", "0.5", "10", "0e1"}) {
    EXPECT_TRUE(ParseJson(text).ok()) << text;
  }
  EXPECT_FALSE(ParseJson("\"\\ud83du00e9\"").ok());
  EXPECT_FALSE(ParseJson("\"\\ud83dude00\"").ok());
}

TEST(JsonTest, AnObjectOfManyMembers_IsReadInLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", "\"", i, "\":1");
  }
  const auto value = ParseJson(text + "}", 10'000'000);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->members.size(), 100'000);
}

}  // namespace
}  // namespace muster
