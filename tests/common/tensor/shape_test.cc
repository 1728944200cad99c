#include "common/tensor/shape.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(ShapeTest, AnswersForItsDimensions) {
  const Shape shape = {5, 5, 1, 32};
  EXPECT_EQ(shape.rank(), 4);
  EXPECT_EQ(shape.dim(3), 32);
  EXPECT_EQ(shape.num_elements(), 800);
  EXPECT_THAT(shape.dims(), ElementsAre(5, 5, 1, 32));
  EXPECT_EQ(shape.ToString(), "[5, 5, 1, 32]");
}

TEST(ShapeTest, AScalarHasOneElementAndAZeroSizeNone) {
  EXPECT_EQ(Shape().num_elements(), 1);
  EXPECT_EQ(Shape().ToString(), "[]");
  EXPECT_EQ(Shape({3, 0, 2}).num_elements(), 0);
}

TEST(ShapeTest, ComparesDimensions) {
  EXPECT_TRUE(Shape({2, 3}) == Shape({2, 3}));
  EXPECT_TRUE(Shape({2, 3}) != Shape({3, 2}));
  EXPECT_TRUE(Shape({1}) != Shape());
}

TEST(ShapeTest, CreateTakesEveryAllowedShape) {
  const auto shape = Shape::Create({2, 3});
  ASSERT_THAT(shape, IsOk());
  EXPECT_TRUE(*shape == Shape({2, 3}));
  EXPECT_THAT(Shape::Create({}), IsOk());
  EXPECT_THAT(Shape::Create(std::vector<int64_t>(8, 2)), IsOk());
  EXPECT_THAT(Shape::Create({kMax / 8}), IsOk());
}

TEST(ShapeTest, CreateRefusesWhatCouldOverflow) {
  struct Case {
    std::vector<int64_t> dims;
    const char* wanted;
  };
  const Case kCases[] = {
      {std::vector<int64_t>(9, 1), "rank 9, at most 8"},
      {{2, -1}, "[2, -1] has a negative size"},
      {{kMax, 2}, "more elements than 2^63"},
      {{1ll << 32, 1ll << 32}, "more elements than 2^63"},
      {{kMax}, "too large"},
      {{kMax / 8 + 1}, "too large"},
  };
  for (const Case& c : kCases) {
    EXPECT_THAT(
        Shape::Create(c.dims),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.wanted)));
  }
}

}  // namespace
}  // namespace muster
