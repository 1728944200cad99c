#include "common/process/stop_signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "absl/synchronization/notification.h"
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

// The kernel repeats a SIGXCPU, a shell a SIGHUP, and SIGTERM follows Slurm's
// --signal=USR1: the save goes on.
TEST(StopRuleTest, NoticesAndTheFirstTermAfterThemEndNothing) {
  StopSignals::Rule rule;
  EXPECT_EQ(rule.OnSignal(SIGUSR1), Answer::kStop);
  for (const int signal : {SIGUSR1, SIGXCPU, SIGHUP, SIGTERM, SIGXCPU}) {
    EXPECT_EQ(rule.OnSignal(signal), Answer::kNothing) << signal;
  }
  EXPECT_EQ(rule.OnSignal(SIGTERM), Answer::kEndAtOnce);
}

// systemd's SendSIGHUP.
TEST(StopRuleTest, ANoticeAfterTermEndsNothing) {
  StopSignals::Rule rule;
  EXPECT_EQ(rule.OnSignal(SIGTERM), Answer::kStop);
  EXPECT_EQ(rule.OnSignal(SIGHUP), Answer::kNothing);
  EXPECT_EQ(rule.OnSignal(SIGINT), Answer::kEndAtOnce);
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
