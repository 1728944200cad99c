#include "worker/layer/window_attributes.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using testing::HasSubstr;

absl::StatusOr<WindowDesc> Make(const std::string& settings, const Shape& input,
                                WindowUse use = WindowUse::kConvolution) {
  LayerSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(settings, &spec));
  const auto attributes =
      Attributes::Create(WindowAttributes(use), spec.attr());
  if (!attributes.ok()) return attributes.status();
  return MakeWindow(*attributes, use, input);
}

TEST(WindowAttributesTest, OneNumberIsASquare) {
  const auto window = Make("attr { name: 'kernel' i: 3 }", {1, 9, 9});
  ASSERT_THAT(window, IsOk());
  EXPECT_EQ(window->kernel_h, 3);
  EXPECT_EQ(window->kernel_w, 3);
  EXPECT_EQ(window->stride_h, 1);
  EXPECT_EQ(window->dst_h(9), 7);
}

TEST(WindowAttributesTest, APoolStridesByItsKernel) {
  const auto window = Make("attr { name: 'kernel' list { v: [3, 2] } }",
                           {1, 9, 9}, WindowUse::kPooling);
  ASSERT_THAT(window, IsOk());
  EXPECT_EQ(window->stride_h, 3);
  EXPECT_EQ(window->stride_w, 2);
}

TEST(WindowAttributesTest, SamePaddingGivesTheCeilingAndPadsTheEnd) {
  const auto window = Make(
      "attr { name: 'kernel' list { v: [4, 3] } } "
      "attr { name: 'stride' i: 2 } attr { name: 'padding' s: 'same' }",
      {1, 9, 8});
  ASSERT_THAT(window, IsOk());
  EXPECT_EQ(window->dst_h(9), 5);
  EXPECT_EQ(window->dst_w(8), 4);
  EXPECT_EQ(window->pad_top, 1);
  EXPECT_EQ(window->pad_bottom, 2);
  EXPECT_EQ(window->pad_left, 0);
  EXPECT_EQ(window->pad_right, 1);
}

TEST(WindowAttributesTest, PadsAreAllOrPairsOrSides) {
  const std::string kernel = "attr { name: 'kernel' i: 5 } ";
  const auto all = Make(kernel + "attr { name: 'pads' i: 2 }", {1, 9, 9});
  ASSERT_THAT(all, IsOk());
  EXPECT_EQ(all->pad_right, 2);
  const auto pairs =
      Make(kernel + "attr { name: 'pads' list { v: [1, 2] } }", {1, 9, 9});
  ASSERT_THAT(pairs, IsOk());
  EXPECT_EQ(pairs->pad_bottom, 1);
  EXPECT_EQ(pairs->pad_left, 2);
  const auto sides = Make(
      kernel + "attr { name: 'pads' list { v: [1, 2, 3, 4] } }", {1, 9, 9});
  ASSERT_THAT(sides, IsOk());
  EXPECT_EQ(sides->pad_top, 1);
  EXPECT_EQ(sides->pad_bottom, 2);
  EXPECT_EQ(sides->pad_left, 3);
  EXPECT_EQ(sides->pad_right, 4);
}

TEST(WindowAttributesTest, RefusesWhatCannotBe) {
  const struct {
    std::string settings;
    std::string message;
  } kCases[] = {
      {"", "kernel"},
      {"attr { name: 'kernel' i: 0 }", "kernel"},
      {"attr { name: 'kernel' list { v: [1, 2, 3] } }", "one or two"},
      {"attr { name: 'kernel' i: 3 } attr { name: 'stride' i: 0 }", "stride"},
      {"attr { name: 'kernel' i: 3 } attr { name: 'pads' i: -1 }", "pads"},
      {"attr { name: 'kernel' i: 3 } attr { name: 'pads' list { v: [1, 1, 1] } "
       "}",
       "found 3"},
      {"attr { name: 'kernel' i: 3 } attr { name: 'pads' i: 1 } "
       "attr { name: 'padding' s: 'same' }",
       "contradicts"},
      {"attr { name: 'kernel' i: 10 }", "does not fit"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(
        Make(c.settings, {1, 9, 9}),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)))
        << c.settings;
  }
}

TEST(WindowAttributesTest, RefusesAPoolOfPadding) {
  EXPECT_THAT(
      Make("attr { name: 'pads' i: 2 }", {1, 9, 9}, WindowUse::kPooling),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("smaller than the kernel")));
}

}  // namespace
}  // namespace muster
