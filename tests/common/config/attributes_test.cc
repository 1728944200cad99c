#include "common/config/attributes.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/training.pb.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<AttrDef> Table() {
  return {
      IntAttr("filters", "output channels").AtLeast(1).AtMost(1 << 20),
      FloatAttr("rate", "kept fraction").MoreThan(0).LessThan(1).Default(0.5),
      FloatAttr("decay", "of weights").AtLeast(0).Default(0),
      StringAttr("padding", "of borders")
          .OneOf({"same", "valid"})
          .Default("same"),
      BoolAttr("use_bias", "adds a bias").Default(true),
      IntsAttr("stride", "rows, columns")
          .AtLeast(1)
          .Default(std::vector<int64_t>{1, 1})};
}

absl::StatusOr<Attributes> Parse(const std::string& text) {
  LayerSpec layer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &layer));
  return Attributes::Create(Table(), layer.attr());
}

TEST(AttributesTest, FillsDefaultsIn) {
  const auto attributes = Parse("attr { name: 'filters' i: 32 }");
  ASSERT_THAT(attributes, IsOk());
  EXPECT_EQ(attributes->Int("filters"), 32);
  EXPECT_EQ(attributes->Float("rate"), 0.5);
  EXPECT_EQ(attributes->Float("decay"), 0.0);
  EXPECT_EQ(attributes->String("padding"), "same");
  EXPECT_TRUE(attributes->Bool("use_bias"));
  EXPECT_THAT(attributes->Ints("stride"), ElementsAre(1, 1));
}

TEST(AttributesTest, TakesGivenValues) {
  const auto attributes = Parse(
      "attr { name: 'filters' i: 7 } attr { name: 'rate' f: 0.25 }"
      "attr { name: 'padding' s: 'valid' } attr { name: 'use_bias' b: false }"
      "attr { name: 'stride' list { v: [2, 3] } }");
  ASSERT_THAT(attributes, IsOk());
  EXPECT_EQ(attributes->Float("rate"), 0.25);
  EXPECT_EQ(attributes->String("padding"), "valid");
  EXPECT_FALSE(attributes->Bool("use_bias"));
  EXPECT_THAT(attributes->Ints("stride"), ElementsAre(2, 3));
}

TEST(AttributesTest, TakesAnIntForAFloatAndForAListOfOne) {
  const auto attributes = Parse(
      "attr { name: 'filters' i: 7 } attr { name: 'decay' i: 2 }"
      "attr { name: 'stride' i: 4 }");
  ASSERT_THAT(attributes, IsOk());
  EXPECT_EQ(attributes->Float("decay"), 2.0);
  EXPECT_THAT(attributes->Ints("stride"), ElementsAre(4));
}

struct BadCase {
  const char* text;
  const char* wanted;
};

TEST(AttributesTest, RefusesBadAttributesByName) {
  const BadCase kCases[] = {
      {"", "'filters' (int: output channels) is required"},
      {"attr { name: 'filter' i: 3 }", "did you mean 'filters'?"},
      {"attr { name: 'filters' }", "'filters' has no value"},
      {"attr { name: 'filters' f: 3.0 }", "must be of type int, found float 3"},
      {"attr { name: 'filters' s: '3' }", "found string '3'"},
      {"attr { name: 'filters' i: 0 }", "must be >= 1 and <= 1048576, found 0"},
      {"attr { name: 'filters' i: -2 }", "found -2"},
      {"attr { name: 'filters' i: 3 } attr { name: 'filters' i: 3 }", "twice"},
      {"attr { name: 'rate' f: 0 }", "must be > 0 and < 1, found 0"},
      {"attr { name: 'rate' f: 1 }", "found 1"},
      {"attr { name: 'decay' f: nan }", "'decay' must be >= 0, found nan"},
      {"attr { name: 'decay' f: inf }", "found inf"},
      {"attr { name: 'padding' s: 'sane' }", "one of same, valid"},
      {"attr { name: 'use_bias' i: 1 }", "must be of type bool"},
      {"attr { name: 'stride' list { v: [1, 0] } }", "found [1, 0]"},
  };
  for (const BadCase& c : kCases) {
    EXPECT_THAT(Parse(c.text), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr(c.wanted)))
        << c.text;
  }
}

TEST(AttributesTest, ParsesTextByTheTable) {
  const std::vector<AttrDef> table = Table();
  EXPECT_EQ(ParseAttr(table[0], "16")->i(), 16);
  EXPECT_EQ(ParseAttr(table[1], "3e-4")->f(), 3e-4);
  EXPECT_EQ(ParseAttr(table[3], "valid")->s(), "valid");
  EXPECT_FALSE(ParseAttr(table[4], "false")->b());
  EXPECT_THAT(ParseAttr(table[5], "[2, 3]")->list().v(), ElementsAre(2, 3));
  EXPECT_THAT(ParseAttr(table[5], "2,3")->list().v(), ElementsAre(2, 3));
  EXPECT_THAT(ParseAttr(table[0], "1.5"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'filters'"), HasSubstr("int"),
                             HasSubstr("'1.5'"))));
  EXPECT_FALSE(ParseAttr(table[1], "x").ok());
  EXPECT_FALSE(ParseAttr(table[4], "maybe").ok());
  EXPECT_FALSE(ParseAttr(table[5], "2,x").ok());
}

TEST(AttributesTest, DescribesTheTable) {
  const std::string text = DescribeAttributes(Table());
  EXPECT_THAT(text, HasSubstr("filters: int, required, >= 1 and <= 1048576: "
                              "output channels\n"));
  EXPECT_THAT(text, HasSubstr("padding: string, default 'same', "
                              "one of same, valid: of borders\n"));
}

}  // namespace
}  // namespace muster
