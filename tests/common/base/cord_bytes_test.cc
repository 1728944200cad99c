#include "common/base/cord_bytes.h"

#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// "abcdefg" in chunks of up to 3.
absl::Cord InChunks() {
  absl::Cord bytes;
  for (const absl::string_view chunk : {"abc", "def", "g"}) {
    bytes.Append(absl::MakeCordFromExternal(chunk, [] {}));
  }
  return bytes;
}

TEST(CopyNextTest, GoesOnWhereItStood) {
  const absl::Cord bytes = InChunks();
  for (size_t first = 0; first <= bytes.size(); ++first) {
    std::string copy(bytes.size(), '.');
    auto position = bytes.char_begin();
    CopyNext(&position, first, &copy[0]);
    EXPECT_EQ(copy, std::string("abcdefg").substr(0, first) +
                        std::string(bytes.size() - first, '.'));
    CopyNext(&position, bytes.size() - first, &copy[0] + first);
    EXPECT_EQ(copy, "abcdefg");
    EXPECT_TRUE(position == bytes.char_end());
  }
}

TEST(CopyCordTest, CopiesEveryChunkAndTellsTheEnd) {
  std::string copy(8, '.');
  EXPECT_EQ(CopyCord(InChunks(), &copy[0]), copy.data() + 7);
  EXPECT_EQ(copy, "abcdefg.");
  EXPECT_EQ(CopyCord(absl::Cord(), &copy[0]), copy.data());
}

TEST(CopyCordTest, LeavesBytesThatLieInTheirPlace) {
  std::string place = "abcXYZ";
  absl::Cord bytes = absl::MakeCordFromExternal({place.data(), 3}, [] {});
  bytes.Append(absl::MakeCordFromExternal("def", [] {}));
  CopyCord(bytes, &place[0]);
  EXPECT_EQ(place, "abcdef");
}

}  // namespace
}  // namespace muster
