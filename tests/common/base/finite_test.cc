#include "common/base/finite.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "hwy/highway.h"

namespace muster {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kDenormal = std::numeric_limits<float>::denorm_min();

void ExpectFoundAtEachPlace(float bad) {
  for (int64_t at = 0; at < 200; ++at) {
    std::vector<float> values(200, -1.5f);
    values[at] = bad;
    ASSERT_EQ(FirstNonFinite(values), at) << bad;
  }
}

TEST(FiniteTest, FindsEachKindAtEachPlaceOnEveryInstructionSet) {
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    for (const float bad : {kNan, -kNan, kInf, -kInf}) {
      ExpectFoundAtEachPlace(bad);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(FiniteTest, LetsEveryFiniteValuePass) {
  for (const float good : {0.0f, -0.0f, kMax, -kMax, kDenormal, -kDenormal}) {
    EXPECT_EQ(FirstNonFinite(std::vector<float>(200, good)), -1) << good;
  }
  EXPECT_EQ(FirstNonFinite({}), -1);
}

TEST(FiniteTest, GivesTheFirstOfTwo) {
  std::vector<float> values(200, 1.0f);
  values[70] = values[100] = kInf;
  EXPECT_EQ(FirstNonFinite(values), 70);
}

TEST(FiniteTest, CopiesAndTellsAtEachPlaceOnEveryInstructionSet) {
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    for (size_t at = 0; at < 201; ++at) {
      std::vector<float> values(200, kMax);
      values[at % 100] = -kDenormal;
      if (at < 200) values[at] = kInf;
      std::vector<float> copy(201, 7);
      ASSERT_EQ(CopyFinite(values, copy.data()), at == 200) << at;
      values.push_back(7);
      ASSERT_EQ(copy, values) << at;
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(FiniteTest, ACopyOfEveryKindIsToldApart) {
  for (const float bad : {kNan, -kNan, kInf, -kInf}) {
    float copy[64];
    EXPECT_FALSE(CopyFinite(std::vector<float>(64, bad), copy)) << bad;
  }
  EXPECT_TRUE(CopyFinite({}, nullptr));
}

}  // namespace
}  // namespace muster
