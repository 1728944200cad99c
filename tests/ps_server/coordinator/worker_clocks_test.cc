#include "ps_server/coordinator/worker_clocks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TaskKey kA = {"worker", 0};
const TaskKey kB = {"worker", 1};
const TaskKey kC = {"worker", 2};

TEST(WorkerClocksTest, RefusesANegativeBound) {
  EXPECT_THAT(WorkerClocks::Check(0), IsOk());
  EXPECT_THAT(
      WorkerClocks::Check(-1),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bound is -1")));
}

TEST(WorkerClocksTest, StopsTheFastExactlyAtTheBound) {
  WorkerClocks clocks(2);
  clocks.SetLive({kA, kB});
  int started = 0;
  while (clocks.MayStart(kA)) {
    ++started;
    clocks.FinishStep(kA);
  }
  EXPECT_EQ(started, 3);
  EXPECT_THAT(clocks.Slowest(), ElementsAre(kB));
  clocks.FinishStep(kB);
  EXPECT_TRUE(clocks.MayStart(kA));
  EXPECT_EQ(clocks.Lag(kA), 2);
}

TEST(WorkerClocksTest, BoundZeroIsLockStep) {
  WorkerClocks clocks(0);
  clocks.SetLive({kA, kB});
  clocks.FinishStep(kA);
  EXPECT_FALSE(clocks.MayStart(kA));
  clocks.FinishStep(kB);
  EXPECT_TRUE(clocks.MayStart(kA));
}

TEST(WorkerClocksTest, NewcomersStartAtTheSlowest) {
  WorkerClocks clocks(1);
  clocks.SetLive({kA, kB});
  for (int i = 0; i < 5; ++i) clocks.FinishStep(kA);
  for (int i = 0; i < 4; ++i) clocks.FinishStep(kB);
  clocks.SetLive({kA, kB, kC});
  EXPECT_EQ(clocks.Lag(kC), 0);
  EXPECT_EQ(clocks.slowest_clock(), 4);
  // Who was away has not held up anybody, and does not when it is back.
  clocks.SetLive({kA, kC});
  for (int i = 0; i < 3; ++i) clocks.FinishStep(kC);
  EXPECT_EQ(clocks.slowest_clock(), 5);
  clocks.SetLive({kA, kB, kC});
  EXPECT_EQ(clocks.Lag(kB), 0);
  EXPECT_EQ(clocks.slowest_clock(), 5);
}

TEST(WorkerClocksTest, GoesOnAfterEverybodyLeft) {
  WorkerClocks clocks(1);
  clocks.SetLive({kA});
  clocks.FinishStep(kA);
  clocks.Leave(kA);
  EXPECT_FALSE(clocks.Has(kA));
  clocks.SetLive({kA});
  EXPECT_EQ(clocks.slowest_clock(), 1);
  EXPECT_TRUE(clocks.MayStart(kA));
}

}  // namespace
}  // namespace muster
