#include "common/checkpoint/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

// RFC 3720, appendix B.4, and the usual check value.
TEST(Crc32cTest, FitsThePublishedVectors) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending.push_back(static_cast<char>(i));
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eu);
}

TEST(Crc32cTest, ExtendsByPieces) {
  std::string text;
  for (int i = 0; i < 100; ++i) text.push_back(static_cast<char>(i * 37));
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(ExtendCrc32c(Crc32c(text.substr(0, cut)), text.substr(cut)),
              Crc32c(text))
        << cut;
  }
}

TEST(Crc32cTest, IsTheSameWithAndWithoutTheInstruction) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(ExtendCrc32cPortable(7, text), ExtendCrc32c(7, text)) << i;
    text.push_back(static_cast<char>(i * i + 11 * i));
  }
}

}  // namespace
}  // namespace muster
