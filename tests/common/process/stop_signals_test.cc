#include "common/process/stop_signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "absl/synchronization/notification.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/reported_lines.h"

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

class NoticeTest : public ::testing::TestWithParam<int> {};
// By this name before the others, which leave the signals blocked.
using NoticeDeathTest = NoticeTest;

TEST_P(NoticeTest, IsATermAndIsNamed) {
  absl::Notification stopped;
  int seen = 0;
  ReportedLines lines;
  StopSignals signals(
      [&](int signal) {
        seen = signal;
        stopped.Notify();
      },
      lines.reporter());
  kill(getpid(), GetParam());
  stopped.WaitForNotification();
  EXPECT_EQ(seen, SIGTERM);
  EXPECT_THAT(lines.lines(),
              ::testing::ElementsAre(::testing::HasSubstr("taken as SIGTERM")));
}

// Until then it has nothing to save.
TEST_P(NoticeDeathTest, EndsAProcessThatBeginsWithTheCodeOfTerm) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        StopSignals::EndByNotices();
        kill(getpid(), GetParam());
        while (true) pause();
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
}

// As under nohup.
TEST_P(NoticeDeathTest, StaysIgnoredWhereItWasIgnored) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        signal(GetParam(), SIG_IGN);
        StopSignals::EndByNotices();
        kill(getpid(), GetParam());
        int calls = 0;
        absl::Notification stopped;
        StopSignals signals([&](int) {
          ++calls;
          stopped.Notify();
        });
        kill(getpid(), GetParam());
        kill(getpid(), SIGINT);
        stopped.WaitForNotification();
        _exit(calls);
      },
      testing::ExitedWithCode(1), "");
}

const auto kNotices =
    ::testing::Values(SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU);
INSTANTIATE_TEST_SUITE_P(Each, NoticeTest, kNotices);
INSTANTIATE_TEST_SUITE_P(Each, NoticeDeathTest, kNotices);

using Answer = StopSignals::Rule::Answer;

constexpr absl::Time kStart = absl::UnixEpoch();
constexpr absl::Duration kSecond = absl::Seconds(1);

// The kernel repeats a SIGXCPU, a shell a SIGHUP, and SIGTERM follows Slurm's
// --signal=USR1: the save goes on.
TEST(StopRuleTest, NoticesAndTheFirstTermAfterThemEndNothing) {
  StopSignals::Rule rule;
  EXPECT_EQ(rule.OnSignal(SIGUSR1, kStart), Answer::kStop);
  for (const int signal : {SIGUSR1, SIGXCPU, SIGHUP, SIGTERM, SIGXCPU}) {
    EXPECT_EQ(rule.OnSignal(signal, kStart + kSecond), Answer::kNothing)
        << signal;
  }
  EXPECT_EQ(rule.OnSignal(SIGTERM, kStart + 2 * kSecond), Answer::kEndAtOnce);
}

// systemd's SendSIGHUP.
TEST(StopRuleTest, ANoticeAfterTermEndsNothing) {
  StopSignals::Rule rule;
  EXPECT_EQ(rule.OnSignal(SIGTERM, kStart), Answer::kStop);
  EXPECT_EQ(rule.OnSignal(SIGHUP, kStart + kSecond), Answer::kNothing);
  EXPECT_EQ(rule.OnSignal(SIGINT, kStart + kSecond), Answer::kEndAtOnce);
}

// As `timeout` sends it.
TEST(StopRuleTest, ATermTwiceWithinASecondIsOne) {
  StopSignals::Rule rule;
  EXPECT_EQ(rule.OnSignal(SIGTERM, kStart), Answer::kStop);
  for (const double part : {0.0, 0.5, 0.999}) {
    EXPECT_EQ(rule.OnSignal(SIGTERM, kStart + part * kSecond),
              Answer::kNothing);
  }
  EXPECT_EQ(rule.OnSignal(SIGTERM, kStart + kSecond), Answer::kEndAtOnce);
}

TEST(StopSignalsTest, EndsWithoutASignal) {
  StopSignals signals([](int) {});
}

TEST(StopSignalsDeathTest, SecondSignalEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        FakeClock clock;
        StopSignals signals(
            [&](int) {
              clock.Advance(kSecond);
              kill(getpid(), SIGINT);
            },
            Reporter(), &clock);
        kill(getpid(), SIGTERM);
        while (true) pause();
      },
      testing::ExitedWithCode(128 + SIGINT), "");
}

}  // namespace
}  // namespace muster
