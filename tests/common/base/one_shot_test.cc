#include "common/base/one_shot.h"

#include <atomic>
#include <memory>

#include "common/base/clock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(OneShotTest, DoesNotWaitForWhatHasHappened) {
  OneShot happened(SystemClock());
  happened.Notify();
  happened.Wait();
}

TEST(OneShotTest, WaitsForAnotherThread) {
  std::atomic<bool> notified{false};
  OneShot happened(SystemClock());
  const std::unique_ptr<ClockThread> thread = SystemClock()->StartThread([&] {
    notified = true;
    happened.Notify();
  });
  happened.Wait();
  EXPECT_TRUE(notified);
}

}  // namespace
}  // namespace muster
