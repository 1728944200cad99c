#include "common/process/stop_signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "absl/synchronization/notification.h"

namespace muster {
namespace {

TEST(StopSignalsTest, FirstSignalIsACallOnAnotherThread) {
  absl::Notification stopped;
  int seen = 0;
  StopSignals signals([&](int signal) {
    seen = signal;
    stopped.Notify();
  });
  kill(getpid(), SIGTERM);
  stopped.WaitForNotification();
  EXPECT_EQ(seen, SIGTERM);
}

TEST(StopSignalsTest, EndsWithoutASignal) {
  StopSignals signals([](int) {});
}

TEST(StopSignalsDeathTest, SecondSignalEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        StopSignals signals([](int) { kill(getpid(), SIGINT); });
        kill(getpid(), SIGTERM);
        while (true) pause();
      },
      testing::ExitedWithCode(128 + SIGINT), "");
}

}  // namespace
}  // namespace muster
