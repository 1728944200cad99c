#include "ps_server/coordinator/end_listeners.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();
constexpr absl::Duration kPatience = absl::Seconds(30);

Sender Ps(int32_t task, uint64_t incarnation = 7) {
  Sender sender;
  sender.mutable_task()->set_job("ps");
  sender.mutable_task()->set_index(task);
  sender.set_incarnation(incarnation);
  return sender;
}

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
  listeners_.OnWatch(Ps(1), 3, 3, kStart);
  listeners_.OnWatch(Ps(2), 3, 3, kStart);
  EXPECT_EQ(listeners_.NextDeadline(), absl::InfiniteFuture());
  listeners_.OnEnd(7, kStart);
  EXPECT_FALSE(listeners_.all_know());
  listeners_.OnWatch(Ps(1), 7, 8, kStart);
  listeners_.OnWatch(Ps(2), 6, 8, kStart);
  EXPECT_FALSE(listeners_.all_know());
  listeners_.OnWatch(Ps(2), 9, 8, kStart);
  EXPECT_FALSE(listeners_.all_know()) << "of a former ps task 0";
  listeners_.OnWatch(Ps(2), 8, 8, kStart);
  EXPECT_TRUE(listeners_.all_know());
}

TEST_F(EndListenersTest, WaitsNotForWhoIsGone) {
  listeners_.OnWatch(Ps(1), 3, 3, kStart);
  listeners_.OnWatch(Ps(2), 3, 3, kStart + absl::Seconds(10));
  listeners_.OnWatch(Ps(3), 3, 3, kStart + absl::Seconds(10));
  listeners_.OnEnd(7, kStart + absl::Seconds(20));
  listeners_.Leave(Ps(3));
  EXPECT_EQ(listeners_.NextDeadline(), kStart + kPatience);
  listeners_.Tick(kStart + kPatience);
  EXPECT_FALSE(listeners_.all_know());
  EXPECT_EQ(listeners_.NextDeadline(), kStart + absl::Seconds(40));
  listeners_.Tick(kStart + absl::Seconds(40));
  EXPECT_TRUE(listeners_.all_know());
}

TEST_F(EndListenersTest, WaitsForWhoIsExpectedThoughItHasNotWatchedYet) {
  listeners_.Expect({"ps", 1}, 7, kStart);
  listeners_.OnEnd(3, kStart + absl::Seconds(1));
  EXPECT_FALSE(listeners_.all_know());
  listeners_.OnWatch(Ps(1), 3, 3, kStart + absl::Seconds(9));
  EXPECT_TRUE(listeners_.all_know());
}

TEST_F(EndListenersTest, ALateFarewellIsNotThatOfTheNewStart) {
  listeners_.OnWatch(Ps(1, 7), 3, 3, kStart);
  listeners_.OnWatch(Ps(1, 8), 3, 3, kStart);
  listeners_.Leave(Ps(1, 7));
  listeners_.Leave(Ps(2, 7));
  listeners_.OnEnd(7, kStart);
  EXPECT_FALSE(listeners_.all_know());
  listeners_.Leave(Ps(1, 8));
  EXPECT_TRUE(listeners_.all_know());
}

TEST_F(EndListenersTest, NamesWhoHasNotHeard) {
  listeners_.OnWatch(Ps(1), 3, 3, kStart);
  EXPECT_EQ(listeners_.Describe(), "") << "before the end";
  listeners_.OnEnd(7, kStart);
  EXPECT_EQ(listeners_.Describe(), "/job:ps/task:1 to hear of the end");
  listeners_.OnWatch(Ps(2), 3, 7, kStart);
  EXPECT_EQ(listeners_.Describe(),
            "/job:ps/task:1 and 1 more tasks to hear of the end");
  listeners_.OnWatch(Ps(1), 7, 7, kStart);
  listeners_.OnWatch(Ps(2), 7, 7, kStart);
  EXPECT_EQ(listeners_.Describe(), "");
}

TEST_F(EndListenersTest, WaitsOnlySoLongForWhoNeverLearnsIt) {
  listeners_.OnEnd(7, kStart);
  for (int second = 0; second < 30; ++second) {
    listeners_.OnWatch(Ps(1), 3, 7, kStart + absl::Seconds(second));
    listeners_.Tick(kStart + absl::Seconds(second));
    EXPECT_FALSE(listeners_.all_know());
  }
  listeners_.Tick(kStart + kPatience);
  EXPECT_TRUE(listeners_.all_know());
}

TEST_F(EndListenersTest, AWorkerIsWaitedForUntilItWasTold) {
  listeners_.Expect({"worker", 1}, 7, kStart);
  listeners_.OnEnd(7, kStart);
  listeners_.OnTold({"worker", 2});
  EXPECT_FALSE(listeners_.all_know());
  listeners_.OnTold({"worker", 1});
  EXPECT_TRUE(listeners_.all_know());
}

}  // namespace
}  // namespace muster
