#include "worker/executor/repeating_thread.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(RepeatingThreadTest, RunsOncePerStart) {
  int runs = 0;
  int input = 0;
  int output = 0;
  RepeatingThread thread([&] {
    ++runs;
    output = 2 * input;
  });
  for (int i = 1; i <= 1000; ++i) {
    input = i;
    thread.Start();
    thread.Wait();
    ASSERT_EQ(runs, i);
    ASSERT_EQ(output, 2 * i);
  }
}

TEST(RepeatingThreadTest, WaitsForNothingAtOnce) {
  RepeatingThread thread([] {});
  thread.Wait();
}

TEST(RepeatingThreadTest, EndsAfterTheRunThatWasStarted) {
  bool ran = false;
  {
    RepeatingThread thread([&ran] { ran = true; });
    thread.Start();
  }
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace muster
