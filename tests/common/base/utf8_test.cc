#include "common/base/utf8.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(Utf8Test, WellFormedSequences_AreUtf8) {
  for (const char* text : {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
                           "\xed\x9f\xbf", "\xee\x80\x80", "\xf0\x90\x80\x80",
                           "\xf4\x8f\xbf\xbf", "r\xc3\xa9sum\xc3\xa9"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  EXPECT_TRUE(IsUtf8(std::string(1, '\0')));
}

TEST(Utf8Test, OverlongSurrogateTruncatedAndTooLargeSequences_AreNot) {
  for (const char* text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80", "\xff", "\xc3", "\xe2\x82",
        "\xf0\x9f\x98", "\xc3\x28", "a\xc3"}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
}

TEST(Utf8Test, AnyBytes_BecomeUtf8AndAreFoundAgain) {
  EXPECT_EQ(Utf8OfBytes("caf\xe9 \xc3\xa9"), "caf\\xE9 \xc3\xa9");
  EXPECT_EQ(Utf8OfBytes("a\\xE9"), "a\\\\xE9");
  EXPECT_EQ(BytesOfUtf8("\\"), "\\");
  EXPECT_EQ(BytesOfUtf8("\\x4"), "\\x4");
  EXPECT_EQ(BytesOfUtf8("\\xzz"), "\\xzz");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += {static_cast<char>(byte), '\\', 'x'};
  }
  const std::string text = Utf8OfBytes(all);
  EXPECT_TRUE(IsUtf8(text));
  EXPECT_EQ(BytesOfUtf8(text), all);
}

}  // namespace
}  // namespace muster
