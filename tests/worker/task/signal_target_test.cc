#include "worker/task/signal_target.h"

#include <csignal>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SignalTargetTest, WithoutATaskTheProcessEndsAtOnce) {
  std::vector<int> codes;
  SignalTarget target([&](int exit_code) { codes.push_back(exit_code); });
  target.OnSignal(SIGTERM);
  EXPECT_THAT(codes, ElementsAre(128 + SIGTERM));
}

TEST(SignalTargetTest, TheTaskGetsTheSignal) {
  std::vector<int> codes;
  SignalTarget target([&](int exit_code) { codes.push_back(exit_code); });
  std::vector<int> signals;
  target.HandTo([&](int signal) { signals.push_back(signal); });
  target.OnSignal(SIGINT);
  EXPECT_THAT(signals, ElementsAre(SIGINT));
  EXPECT_THAT(codes, IsEmpty());
}

}  // namespace
}  // namespace muster
