#include "worker/checkpoint/schema_text.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "common/checkpoint/checked_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

DataSchema Example() {
  DataSchema schema;
  schema.set_format("csv");
  schema.add_column()->set_name("width \"a\"\n");
  schema.mutable_label()->add_class_name("cat");
  schema.mutable_training()->set_rows(3);
  return schema;
}

auto IsDamaged(const std::string& what) {
  return StatusIs(absl::StatusCode::kDataLoss, HasSubstr(what));
}

TEST(SchemaTextTest, SurvivesItsText) {
  const auto schema = ParseSchema(FormatSchema(Example()));
  ASSERT_THAT(schema, IsOk());
  EXPECT_EQ(schema->SerializeAsString(), Example().SerializeAsString());
}

TEST(SchemaTextTest, ATextThatWasCutShortOrEditedIsDamaged) {
  const std::string text = FormatSchema(Example());
  EXPECT_THAT(ParseSchema(text.substr(0, text.size() / 2)),
              IsDamaged("cut short or edited"));
  EXPECT_THAT(ParseSchema(absl::StrReplaceAll(text, {{"cat", "dog"}})),
              IsDamaged("cut short or edited"));
  EXPECT_THAT(ParseSchema(""), IsDamaged("no schema"));
  EXPECT_THAT(ParseSchema("format: \"csv\"\n"), IsDamaged("no schema"));
}

TEST(SchemaTextTest, ALaterVersionIsNamed) {
  std::string text = FormatSchema(Example());
  text.resize(text.rfind('#'));
  text = absl::StrReplaceAll(text, {{"format 5;", "format 6;"}});
  EXPECT_THAT(ParseSchema(WithCrcLine(text + "later { by: 2 }\n")),
              IsDamaged("format 6, this program reads up to 5"));
}

TEST(SchemaTextTest, AFieldThatIsUnknownIsNamed) {
  std::string text = FormatSchema(Example());
  text.resize(text.rfind('#'));
  EXPECT_THAT(ParseSchema(WithCrcLine(text + "invented: 1\n")),
              IsDamaged("invented"));
}

}  // namespace
}  // namespace muster
