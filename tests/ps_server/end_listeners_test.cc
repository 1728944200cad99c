#include "ps_server/end_listeners.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();
constexpr absl::Duration kPatience = absl::Seconds(30);

class EndListenersTest : public ::testing::Test {
 protected:
  EndListeners listeners_{kPatience};
};

TEST_F(EndListenersTest, NobodyListens) {
  EXPECT_FALSE(listeners_.all_know()) << "there is no end";
  listeners_.OnEnd(7, kStart);
  EXPECT_TRUE(listeners_.all_know());
  EXPECT_EQ(listeners_.NextDeadline(), absl::InfiniteFuture());
}

TEST_F(EndListenersTest, WaitsUntilEachWatchesFromTheEndOn) {
  listeners_.OnWatch(1, 3, 3, kStart);
  listeners_.OnWatch(2, 3, 3, kStart);
  EXPECT_EQ(listeners_.NextDeadline(), absl::InfiniteFuture());
  listeners_.OnEnd(7, kStart);
  EXPECT_FALSE(listeners_.all_know());
  listeners_.OnWatch(1, 7, 8, kStart);
  listeners_.OnWatch(2, 6, 8, kStart);
  EXPECT_FALSE(listeners_.all_know());
  listeners_.OnWatch(2, 9, 8, kStart);
  EXPECT_FALSE(listeners_.all_know()) << "of a former ps task 0";
  listeners_.OnWatch(2, 8, 8, kStart);
  EXPECT_TRUE(listeners_.all_know());
}

TEST_F(EndListenersTest, WaitsNotForWhoIsGone) {
  listeners_.OnWatch(1, 3, 3, kStart);
  listeners_.OnWatch(2, 3, 3, kStart + absl::Seconds(10));
  listeners_.OnWatch(3, 3, 3, kStart + absl::Seconds(10));
  listeners_.OnEnd(7, kStart + absl::Seconds(20));
  listeners_.Leave(3);
  EXPECT_EQ(listeners_.NextDeadline(), kStart + kPatience);
  listeners_.Tick(kStart + kPatience);
  EXPECT_FALSE(listeners_.all_know());
  EXPECT_EQ(listeners_.NextDeadline(), kStart + absl::Seconds(40));
  listeners_.Tick(kStart + absl::Seconds(40));
  EXPECT_TRUE(listeners_.all_know());
}

TEST_F(EndListenersTest, WaitsOnlySoLongForWhoNeverLearnsIt) {
  listeners_.OnEnd(7, kStart);
  for (int second = 0; second < 30; ++second) {
    listeners_.OnWatch(1, 3, 7, kStart + absl::Seconds(second));
    listeners_.Tick(kStart + absl::Seconds(second));
    EXPECT_FALSE(listeners_.all_know());
  }
  listeners_.Tick(kStart + kPatience);
  EXPECT_TRUE(listeners_.all_know());
}

}  // namespace
}  // namespace muster
