#include "common/base/crc32c.h"

#include <sys/mman.h>

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

// Pages of zeros that take no memory.
TEST(Crc32cTest, MoreBytesThanAnIntCounts_AreAllIn) {
  constexpr size_t kBytes = (size_t{1} << 32) + 6;
  void* const zeros = mmap(nullptr, kBytes, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  madvise(zeros, kBytes, MADV_HUGEPAGE);
  const absl::string_view all(static_cast<const char*>(zeros), kBytes);
  uint32_t by_thirds = 0;
  for (size_t i = 0; i < 3; ++i) {
    by_thirds = ExtendCrc32c(by_thirds, all.substr(kBytes / 3 * i, kBytes / 3));
  }
  static_assert(kBytes % 3 == 1);
  EXPECT_EQ(Crc32c(all), ExtendCrc32c(by_thirds, all.substr(0, 1)));
  munmap(zeros, kBytes);
}

}  // namespace
}  // namespace muster
