#include "worker/backend/cpu/dnnl_layout.h"

#include <cstdint>
#include <numeric>
#include <utility>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
constexpr auto kFloat = dnnl::memory::data_type::f32;

TEST(DnnlLayoutTest, PlainLayoutIsRowMajor) {
  const auto layout = LayoutOf(Desc({2, 3, 4, 5}, kFloat, Tag::nchw));
  ASSERT_THAT(layout, IsOk());
  EXPECT_EQ(*layout, MemoryLayout::RowMajor(FLOAT32, {2, 3, 4, 5}));
}

TEST(DnnlLayoutTest, StrideOfADimensionOfOneDoesNotMatter) {
  const auto layout = LayoutOf(Desc({2, 1, 4, 5}, kFloat, Tag::nhwc));
  ASSERT_THAT(layout, IsOk());
  EXPECT_TRUE(layout->is_row_major());
}

TEST(DnnlLayoutTest, EveryBlockedLayoutComesBackWhole) {
  for (const Tag tag : {Tag::nhwc, Tag::nChw8c, Tag::nChw16c, Tag::OIhw8i8o,
                        Tag::OIhw16o16i, Tag::Ohwi8o, Tag::OIhw4i16o4i}) {
    const Desc desc({17, 5, 3, 4}, kFloat, tag);
    const auto layout = LayoutOf(desc);
    ASSERT_THAT(layout, IsOk());
    EXPECT_FALSE(layout->is_row_major());
    EXPECT_EQ(layout->size_bytes, static_cast<int64_t>(desc.get_size()));
    const auto again = DnnlDescOf(*layout);
    ASSERT_THAT(again, IsOk());
    EXPECT_TRUE(*again == desc) << layout->ToString();
  }
}

TEST(DnnlLayoutTest, RowsOfTensorsOneBehindAnotherAreOneTensors) {
  for (const Tag tag : {Tag::nchw, Tag::nhwc, Tag::nChw8c, Tag::nChw16c}) {
    const auto part = LayoutOf(Desc({3, 5, 3, 4}, kFloat, tag));
    ASSERT_THAT(part, IsOk());
    const auto whole = LayoutOf(Desc({12, 5, 3, 4}, kFloat, tag));
    ASSERT_THAT(whole, IsOk());
    const auto stacked = Stacked(*part, 4);
    ASSERT_TRUE(stacked.has_value());
    EXPECT_EQ(*stacked, *whole) << stacked->ToString();
  }
}

TEST(DnnlLayoutTest, RowsInBlocksOrBetweenOthersCannotBeStacked) {
  for (const Tag tag : {Tag::NChw16n16c, Tag::chwn}) {
    const auto part = LayoutOf(Desc({16, 5, 3, 4}, kFloat, tag));
    ASSERT_THAT(part, IsOk());
    EXPECT_FALSE(Stacked(*part, 4).has_value()) << part->ToString();
  }
}

TEST(DnnlLayoutTest, GroupedWeightsHaveTheShapeOfTheirParameter) {
  for (const Tag tag : {Tag::goihw, Tag::Goihw8g, Tag::gOIhw8i8o}) {
    const Desc desc({3, 17, 5, 3, 4}, kFloat, tag);
    const auto layout = LayoutOf(desc);
    ASSERT_THAT(layout, IsOk());
    EXPECT_EQ(layout->shape, (Shape{51, 5, 3, 4}));
    EXPECT_EQ(layout->is_row_major(), tag == Tag::goihw);
    EXPECT_EQ(layout->size_bytes, static_cast<int64_t>(desc.get_size()));
    if (tag == Tag::goihw) continue;
    const auto again = DnnlDescOf(*layout);
    ASSERT_THAT(again, IsOk());
    EXPECT_TRUE(*again == desc) << layout->ToString();
  }
}

// As oneDNN itself puts elements from row-major order into a layout.
TEST(DnnlLayoutTest, KnowsWhereEachElementLies) {
  const dnnl::memory::dims dims = {3, 17, 2, 4};
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  dnnl::memory plain(Desc(dims, kFloat, Tag::nchw), engine);
  auto* const values = static_cast<float*>(plain.get_data_handle());
  std::iota(values, values + 3 * 17 * 2 * 4, 1.0f);
  for (const Tag tag : {Tag::nchw, Tag::nhwc, Tag::nChw8c, Tag::nChw16c,
                        Tag::OIhw8i8o, Tag::OIhw4i16o4i}) {
    dnnl::memory other(Desc(dims, kFloat, tag), engine);
    dnnl::reorder(plain, other).execute(stream, plain, other);
    const auto* const found = static_cast<float*>(other.get_data_handle());
    for (int64_t i = 0; i < 3 * 17 * 2 * 4; ++i) {
      const int64_t at = OffsetOf(
          other.get_desc(), {i / 4 / 2 / 17, i / 4 / 2 % 17, i / 4 % 2, i % 4});
      ASSERT_EQ(found[at], values[i]) << i;
    }
  }
}

TEST(DnnlLayoutTest, KnowsTheChannelBlock) {
  for (const auto& [tag, block] : {std::pair<Tag, int64_t>{Tag::nchw, 0},
                                   {Tag::nhwc, 0},
                                   {Tag::nChw8c, 8},
                                   {Tag::nChw16c, 16},
                                   {Tag::OIhw8i8o, 0}}) {
    const auto layout = LayoutOf(Desc({16, 17, 3, 4}, kFloat, tag));
    ASSERT_THAT(layout, IsOk());
    EXPECT_EQ(ChannelBlock(*layout), block);
  }
}

TEST(DnnlLayoutTest, RefusesFormatsOfOthers) {
  for (const char* format :
       {"nchw", "strides 1,2,3,4", "strides 1,2,3 blocks 8b",
        "strides 1,2,3,4 blocks 8e", "strides 1,2,3,4 blocks 0b",
        "strides a,b,c,d blocks 8b", "strides 1,2,3,4 blocks b", "groups",
        "groups 3 strides 1,2,3,4,5 blocks 8e", "groups 0",
        "groups 2 strides 1,2,3,4 blocks 8e"}) {
    EXPECT_THAT(DnnlDescOf({FLOAT32, {2, 3, 4, 5}, format, 480}),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << format;
  }
}

}  // namespace
}  // namespace muster
