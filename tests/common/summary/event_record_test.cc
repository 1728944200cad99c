#include "common/summary/event_record.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

// The CRCs are those of TensorBoard's own code.
constexpr char kData[] =
    "\x1a\x11"
    "CRC test, one two";
constexpr absl::string_view k18("\x12\0\0\0\0\0\0\0", 8);
constexpr absl::string_view k19("\x13\0\0\0\0\0\0\0", 8);

TEST(EventRecordTest, MasksTheCrc) {
  EXPECT_EQ(MaskedCrc32c(kData), 0x5794d08au);
  EXPECT_EQ(MaskedCrc32c(k18), 0x25641f24u);
}

TEST(EventRecordTest, FramesTheData) {
  std::string out = "before";
  AppendRecord(kData, &out);
  const std::string expected = "before" + std::string(k19) +
                               "\x0c\x91\x32\x1b" + kData + "\x8a\xd0\x94\x57";
  EXPECT_EQ(out, expected);
}

TEST(EventRecordTest, FramesNothing) {
  std::string out;
  AppendRecord("", &out);
  ASSERT_EQ(out.size(), 16u);
  EXPECT_EQ(out.substr(0, 8), std::string(8, '\0'));
}

}  // namespace
}  // namespace muster
