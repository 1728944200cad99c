// Linked statically, as the binaries are: a codec whose library lacks
// alwayslink is missing here, too.
#include "common/codec/codec.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CodecTest, HasEveryCodecOnce) {
  EXPECT_THAT(CodecRegistry::Validate(), IsOk());
  EXPECT_THAT(CodecRegistry::Names(), ElementsAre("bf16", "fp16"));
}

TEST(CodecTest, EveryCodecSavesBytesAndKeepsSmallIntegers) {
  const std::vector<float> values = {0, 1, -1, 2, 64, -127};
  for (const std::string& name : CodecRegistry::Names()) {
    const auto codec = FindCodec(name);
    ASSERT_THAT(codec, IsOk()) << name;
    EXPECT_EQ((*codec)->name(), name);
    EXPECT_LT(EncodedBytes(*codec, 1), 4) << name;
    const auto n = static_cast<int64_t>(values.size());
    std::vector<char> encoded(static_cast<size_t>(EncodedBytes(*codec, n)));
    (*codec)->Encode(values.data(), n, encoded.data());
    std::vector<float> decoded(values.size());
    (*codec)->Decode(encoded.data(), n, decoded.data());
    EXPECT_EQ(decoded, values) << name;
  }
}

TEST(CodecTest, NoNameIsNoCodec) {
  const auto none = FindCodec("");
  ASSERT_THAT(none, IsOk());
  EXPECT_EQ(*none, nullptr);
  EXPECT_EQ(EncodedBytes(nullptr, 3), 12);
}

TEST(CodecTest, AnUnknownNameOffersTheNearest) {
  EXPECT_THAT(FindCodec("bf61"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("bf16")));
}

}  // namespace
}  // namespace muster
