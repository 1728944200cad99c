#include "common/config/json_quote.h"

#include <gtest/gtest.h>

#include <string>

#include "common/config/json.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

TEST(JsonQuoteTest, WritesPlainTextAsItIs) {
  EXPECT_EQ(JsonQuote(""), "\"\"");
  EXPECT_EQ(JsonQuote("conv1/weights"), "\"conv1/weights\"");
}

TEST(JsonQuoteTest, OurParserReadsEveryByteBack) {
  std::string text;
  for (char c = 0; c < 0x7f; ++c) text += c;
  text += "\xc3\xa4";
  const auto value = ParseJson(JsonQuote(text));
  ASSERT_THAT(value, IsOk());
  EXPECT_EQ(value->text, text);
}

}  // namespace
}  // namespace muster
