#include "common/base/finite.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace muster {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kDenormal = std::numeric_limits<float>::denorm_min();

TEST(FiniteTest, FindsEachKindAtEachPlace) {
  for (const float bad : {kNan, -kNan, kInf, -kInf}) {
    for (const int64_t at : {0, 1, 63, 64, 65, 127, 128, 199}) {
      std::vector<float> values(200, -1.5f);
      values[at] = bad;
      EXPECT_EQ(FirstNonFinite(values), at) << bad;
    }
  }
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

}  // namespace
}  // namespace muster
