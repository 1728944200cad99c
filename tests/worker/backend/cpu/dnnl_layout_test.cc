#include "worker/backend/cpu/dnnl_layout.h"

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
        "strides a,b,c,d blocks 8b", "strides 1,2,3,4 blocks b"}) {
    EXPECT_THAT(DnnlDescOf({FLOAT32, {2, 3, 4, 5}, format, 480}),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << format;
  }
}

}  // namespace
}  // namespace muster
