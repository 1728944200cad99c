#include "common/base/readable_number.h"

#include <limits>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(ReadableNumberTest, WritesTheWholePartInFull) {
  EXPECT_EQ(ReadableNumber(1583.4, 3), "1583");
  EXPECT_EQ(ReadableNumber(999.6, 3), "1000");
  EXPECT_EQ(ReadableNumber(123456789, 3), "123456789");
  EXPECT_EQ(ReadableNumber(-25000, 4), "-25000");
}

TEST(ReadableNumberTest, KeepsSignificantDigitsOfSmallerNumbers) {
  EXPECT_EQ(ReadableNumber(0, 3), "0");
  EXPECT_EQ(ReadableNumber(7.1234, 3), "7.12");
  EXPECT_EQ(ReadableNumber(99.96, 3), "100");
  EXPECT_EQ(ReadableNumber(0.21349, 4), "0.2135");
  EXPECT_EQ(ReadableNumber(0.00012, 3), "0.00012");
}

TEST(ReadableNumberTest, TakesPowersOfTenForWhatNobodyReadsInFull) {
  EXPECT_EQ(ReadableNumber(1e300, 3), "1e+300");
  EXPECT_EQ(ReadableNumber(1e-7, 3), "1e-07");
  EXPECT_EQ(ReadableNumber(std::numeric_limits<double>::infinity(), 3), "inf");
}

TEST(ReadableNumberTest, NanHasNoSign) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(ReadableNumber(-nan, 3), "nan");
  EXPECT_EQ(ReadableNumber(nan, 3), "nan");
  EXPECT_EQ(WithoutNanSign(-2.5), -2.5);
}

}  // namespace
}  // namespace muster
