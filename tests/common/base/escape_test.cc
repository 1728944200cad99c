#include "common/base/escape.h"

#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(EscapeTest, LeavesPlainTextAndUtf8Alone) {
  EXPECT_EQ(EscapeForLog("step=1 \"x\" 'y' \\"), "step=1 \"x\" 'y' \\");
  EXPECT_EQ(EscapeForLog("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82"),
            "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82");
}

TEST(EscapeTest, EscapesControlCharacters) {
  EXPECT_EQ(EscapeForLog("a\nb\r\t"), "a\\nb\\r\\t");
  EXPECT_EQ(EscapeForLog("\x1b]0;owned\x07"), "\\x1b]0;owned\\x07");
  EXPECT_EQ(EscapeForLog(absl::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(EscapeForLog("\x7f"), "\\x7f");
  // U+009B opens a terminal's control sequence like ESC [ does.
  EXPECT_EQ(EscapeForLog("\xc2\x9b"), "\\xc2\\x9b");
}

TEST(EscapeTest, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(EscapeForLog("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(EscapeForLog("\xe2\x82z"), "\\xe2\\x82z");
}

TEST(EscapeTest, CutsLongText) {
  EXPECT_EQ(EscapeForLog("abcdef", 6), "abcdef");
  EXPECT_EQ(EscapeForLog("abcdefg", 6), "abcdef...");
}

}  // namespace
}  // namespace muster
