#include "worker/client/link/timer_queue.h"

#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

absl::Time In(absl::Duration duration) {
  return MonotonicClock().Now() + duration;
}

TEST(TimerQueueTest, RunsInTheOrderOfTimeNotBeforeIt) {
  TimerQueue queue;
  std::vector<int> order;
  absl::Notification ended;
  const absl::Time due = In(absl::Milliseconds(30));
  queue.RunAt(due + absl::Milliseconds(2), [&] {
    order.push_back(3);
    ended.Notify();
  });
  // Comes later and is due before what the thread waits for.
  queue.RunAt(due, [&] {
    EXPECT_GE(MonotonicClock().Now(), due);
    order.push_back(1);
  });
  queue.RunAt(due + absl::Milliseconds(1), [&] { order.push_back(2); });
  ended.WaitForNotification();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(TimerQueueTest, RunsWhatIsPastAtOnceOnAThreadOfItsOwn) {
  TimerQueue queue;
  std::thread::id runner;
  absl::Notification ended;
  queue.RunAt(absl::InfinitePast(), [&] {
    runner = std::this_thread::get_id();
    ended.Notify();
  });
  ended.WaitForNotification();
  EXPECT_NE(runner, std::this_thread::get_id());
}

TEST(TimerQueueTest, AFunctionMayAddAnother) {
  TimerQueue queue;
  absl::Notification ended;
  queue.RunAt(In(absl::ZeroDuration()), [&] {
    queue.RunAt(In(absl::Milliseconds(1)), [&] { ended.Notify(); });
  });
  ended.WaitForNotification();
}

// A function's last reference may go with it, and say so to the queue.
TEST(TimerQueueTest, AFunctionIsDestroyedWithoutTheLock) {
  TimerQueue queue;
  absl::Notification ended;
  std::shared_ptr<int> held(new int(0), [&](int* value) {
    delete value;
    queue.RunAt(absl::InfinitePast(), [&] { ended.Notify(); });
  });
  queue.RunAt(absl::InfinitePast(), [held = std::move(held)] {});
  EXPECT_TRUE(ended.WaitForNotificationWithTimeout(absl::Seconds(20)));
}

TEST(TimerQueueTest, DropsAtItsEndWhatIsNotDue) {
  const auto held = std::make_shared<int>(0);
  {
    TimerQueue queue;
    queue.RunAt(absl::InfiniteFuture(), [held] { FAIL(); });
    queue.RunAt(In(absl::Hours(1)), [held] { FAIL(); });
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace muster
