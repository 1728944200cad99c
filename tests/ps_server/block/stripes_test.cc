#include "ps_server/block/stripes.h"

#include <string>
#include <vector>

#include "common/codec/codec.h"
#include "common/rpc/protocol.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"

namespace muster {
namespace {

constexpr int64_t kBlock = kBlockElements;

// Two tensors, the first from its third block on; both with a shorter end.
const std::vector<CheckedSlice>& Slices() {
  static const auto& slices = *new std::vector<CheckedSlice>{
      {4, 2 * kBlock, 5 * kBlock + 7}, {5, 0, 3}, {6, 0, 4 * kBlock}};
  return slices;
}

int64_t ElementsOf(absl::Span<const CheckedSlice> slices) {
  int64_t elements = 0;
  for (const CheckedSlice& slice : slices) elements += slice.length;
  return elements;
}

TEST(StripesTest, OneStripeIsAllOfTheSlices) {
  const Stripes stripes(Slices(), 1);
  ASSERT_EQ(stripes.size(), 1);
  EXPECT_EQ(stripes.slices(0).data(), Slices().data());
  EXPECT_EQ(stripes.slices(0).size(), 3);
}

TEST(StripesTest, LessThanTwoBlocksAreNotCut) {
  const std::vector<CheckedSlice> small = {{0, 0, 2 * kBlock - 1}};
  EXPECT_EQ(Stripes(small, 8).size(), 1);
  EXPECT_EQ(Stripes({}, 8).size(), 1);
}

TEST(StripesTest, HaveEveryBlockOnceInOrderAndAreAboutEqual) {
  const int64_t all = ElementsOf(Slices());
  for (int most = 2; most <= 12; ++most) {
    const Stripes stripes(Slices(), most);
    EXPECT_LE(stripes.size(), most);
    EXPECT_GE(stripes.size(), 2);
    std::vector<CheckedSlice> joined;
    for (int i = 0; i < stripes.size(); ++i) {
      EXPECT_LE(ElementsOf(stripes.slices(i)), all / most + 2 * kBlock);
      for (const CheckedSlice& slice : stripes.slices(i)) {
        EXPECT_EQ(slice.offset % kBlock, 0);
        if (!joined.empty() && joined.back().tensor == slice.tensor) {
          EXPECT_EQ(slice.offset, joined.back().offset + joined.back().length);
          joined.back().length += slice.length;
        } else {
          joined.push_back(slice);
        }
      }
    }
    ASSERT_EQ(joined.size(), Slices().size());
    for (size_t i = 0; i < joined.size(); ++i) {
      EXPECT_EQ(joined[i].tensor, Slices()[i].tensor);
      EXPECT_EQ(joined[i].offset, Slices()[i].offset);
      EXPECT_EQ(joined[i].length, Slices()[i].length);
    }
  }
}

TEST(StripesTest, HaveTheirOwnPartOfTheData) {
  const int64_t all = ElementsOf(Slices());
  for (const char* const name : {"", "bf16"}) {
    const Codec* const codec = *FindCodec(name);
    std::string bytes(EncodedBytes(codec, all), '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
    const Stripes stripes(Slices(), 3);
    std::string joined;
    for (int i = 0; i < stripes.size(); ++i) {
      const absl::Cord data = stripes.DataOf(i, absl::Cord(bytes), codec);
      EXPECT_EQ(data.size(),
                EncodedBytes(codec, ElementsOf(stripes.slices(i))));
      joined += std::string(data);
    }
    EXPECT_TRUE(joined == bytes);
  }
}

}  // namespace
}  // namespace muster
