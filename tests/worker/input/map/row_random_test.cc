#include "worker/input/map/row_random.h"

#include <cstdint>
#include <set>

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr int64_t kBound = int64_t{1} << 62;

TEST(RowRandomTest, IsAFunctionOfItsKey) {
  RowRandom first(7, 3, 11);
  RowRandom again(7, 3, 11);
  EXPECT_EQ(first.Below(kBound), again.Below(kBound));
  EXPECT_EQ(first.Below(kBound), again.Below(kBound));
}

TEST(RowRandomTest, EveryPartOfTheKeyCounts) {
  RowRandom randoms[] = {
      {7, 3, 11},
      {8, 3, 11},
      {7, 4, 11},
      {7, 3, 12},
      {7, 11, 3},
      RowRandom(7, 3, 11).ForStage(0),
      RowRandom(7, 3, 11).ForStage(1),
      RowRandom(7, 3, 0).ForStage(11),
  };
  std::set<int64_t> numbers;
  for (RowRandom& random : randoms) {
    numbers.insert(random.Below(kBound));
    numbers.insert(random.Below(kBound));
  }
  EXPECT_EQ(numbers.size(), 16);
}

TEST(RowRandomTest, StagesDoNotDependOnWhatWasDrawnBefore) {
  RowRandom row(7, 3, 11);
  RowRandom before = row.ForStage(1);
  row.Below(kBound);
  EXPECT_EQ(row.ForStage(1).Below(kBound), before.Below(kBound));
}

// Training goes on after a restart with another binary: these may not change.
TEST(RowRandomTest, NumbersStayTheSame) {
  RowRandom random = RowRandom(1, 2, 3).ForStage(4);
  EXPECT_EQ(random.Below(int64_t{1} << 32), 3964477951);
  EXPECT_EQ(random.Below(1000), 727);
  EXPECT_EQ(random.Uniform(), 0x1.d96ee8d830952p-1);
}

TEST(RowRandomTest, BelowTakesEveryNumberAndNoOther) {
  RowRandom random(1, 0, 0);
  std::set<int64_t> numbers;
  for (int i = 0; i < 200; ++i) numbers.insert(random.Below(5));
  EXPECT_EQ(numbers, (std::set<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(random.Below(1), 0);
}

TEST(RowRandomTest, UniformFillsItsInterval) {
  RowRandom random(1, 0, 0);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double number = random.Uniform();
    ASSERT_GE(number, 0);
    ASSERT_LT(number, 1);
    sum += number;
  }
  // Seven standard deviations of the mean, 0.0029 each.
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

}  // namespace
}  // namespace muster
