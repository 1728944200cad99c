#include "worker/tower/sum_of_squares.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

TEST(SumOfSquaresTest, CountsEveryElementOnce) {
  std::vector<float> values;
  double expected = 0;
  for (int n = 0; n <= 20; ++n) {
    EXPECT_EQ(SumOfSquares(values), expected) << n;
    values.push_back(static_cast<float>(n - 3));
    expected += (n - 3) * (n - 3);
  }
}

TEST(SumOfSquaresTest, IsInDouble) {
  // The square overflows a float.
  EXPECT_EQ(SumOfSquares({1e30f}),
            static_cast<double>(1e30f) * static_cast<double>(1e30f));
}

}  // namespace
}  // namespace muster
