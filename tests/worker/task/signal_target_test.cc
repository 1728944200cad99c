#include "worker/task/signal_target.h"

#include <csignal>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(SignalTargetTest, StopsTheLatchBeforeThereIsATask) {
  SignalTarget target;
  target.OnSignal(SIGTERM);
  EXPECT_EQ(target.latch()->Wait().exit_code, 128 + SIGTERM);
}

TEST(SignalTargetTest, TheTaskGetsTheSignal) {
  SignalTarget target;
  std::vector<int> signals;
  EXPECT_EQ(target.HandTo([&](int signal) { signals.push_back(signal); }),
            std::nullopt);
  target.OnSignal(SIGINT);
  EXPECT_THAT(signals, ElementsAre(SIGINT));
  EXPECT_FALSE(target.latch()->WaitFor(absl::ZeroDuration()).has_value());
}

TEST(SignalTargetTest, ATaskThatComesTooLateIsNotStarted) {
  SignalTarget target;
  target.OnSignal(SIGTERM);
  EXPECT_THAT(target.HandTo([](int) {}), Optional(128 + SIGTERM));
}

TEST(SignalTargetTest, GivesTheTaskUpThoughTheLatchIsStopped) {
  SignalTarget target;
  std::vector<int> signals;
  target.HandTo([&](int signal) { signals.push_back(signal); });
  target.latch()->Stop({0, "the job is done"});
  EXPECT_THAT(target.HandTo(nullptr), Optional(0));
  target.OnSignal(SIGINT);
  EXPECT_THAT(signals, IsEmpty());
}

}  // namespace
}  // namespace muster
