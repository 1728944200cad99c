#include "common/base/spin_until.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

// A machine on which a pause takes a microsecond.
struct FakeMachine {
  static std::chrono::steady_clock::time_point Now() {
    return std::chrono::steady_clock::time_point() +
           std::chrono::microseconds(pauses);
  }
  static bool HasCores() { return cores > 1; }
  static void Pause() { ++pauses; }

  static inline int cores = 2;
  static inline int pauses = 0;
};

class SpinUntilTest : public testing::Test {
 protected:
  SpinUntilTest() {
    FakeMachine::cores = 2;
    FakeMachine::pauses = 0;
  }
};

TEST_F(SpinUntilTest, GivesUpAtItsLimit) {
  for (const std::chrono::microseconds limit : {kSpin, 10 * kSpin}) {
    FakeMachine::pauses = 0;
    EXPECT_FALSE(SpinUntil<FakeMachine>([] { return false; }, limit));
    EXPECT_GE(FakeMachine::pauses, limit.count());
    EXPECT_LE(FakeMachine::pauses, 2 * limit.count());
  }
}

TEST_F(SpinUntilTest, EndsWhenItIsReady) {
  int looks = 0;
  EXPECT_TRUE(SpinUntil<FakeMachine>([&] { return ++looks == 7; }));
  EXPECT_EQ(looks, 7);
  EXPECT_EQ(FakeMachine::pauses, 6);
}

TEST_F(SpinUntilTest, OnOneCoreItLooksOnce) {
  FakeMachine::cores = 1;
  int looks = 0;
  EXPECT_FALSE(SpinUntil<FakeMachine>([&] { return ++looks > 1; }));
  EXPECT_EQ(looks, 1);
  EXPECT_TRUE(SpinUntil<FakeMachine>([] { return true; }));
  EXPECT_EQ(FakeMachine::pauses, 0);
}

}  // namespace
}  // namespace muster
