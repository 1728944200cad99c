#include "common/checkpoint/checked_text.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(CheckedTextTest, FitsAsItWasWritten) {
  EXPECT_TRUE(CrcLineFits(WithCrcLine("a: 1\nb: 2\n")));
  EXPECT_TRUE(CrcLineFits(WithCrcLine("")));
}

TEST(CheckedTextTest, NoCutAndNoEditFits) {
  const std::string text = WithCrcLine("a: 1\nb: 2\n");
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(CrcLineFits(text.substr(0, size))) << size;
    std::string edited = text;
    edited[size] ^= 1;
    EXPECT_FALSE(CrcLineFits(edited)) << size;
  }
  EXPECT_FALSE(CrcLineFits(text + "c: 3\n"));
  EXPECT_FALSE(CrcLineFits(text + "\n"));
}

}  // namespace
}  // namespace muster
