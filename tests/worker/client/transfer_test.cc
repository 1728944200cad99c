#include "worker/client/transfer.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "gtest/gtest.h"
#include "worker/client/link/timer_queue.h"

namespace muster {
namespace {

// Enough for the two answers below to meet in every order: without the
// guarantee, more than one round in a thousand fails.
constexpr int kRounds = 4000;
constexpr int kParts = 8;
// A Cancel that does not wait returns in microseconds.
constexpr absl::Duration kLongEnough = absl::Milliseconds(100);

// A transfer's send function may refer to the stack of who waits for its end.
TEST(TransferTest, SendsNothingAfterItsEnd) {
  const MonotonicClock clock{};
  TimerQueue timers;
  TransferOptions options;
  options.window_parts = 1;
  int late_sends = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<bool> ended = false;
    std::atomic<int> late = 0;
    const auto transfer = std::make_shared<Transfer>(
        Transfer::Environment{&clock, &timers},
        TransferWindow(options, {std::vector<int64_t>(kParts, 1), {1}},
                       {"/job:ps/task:0", "/job:ps/task:1"}),
        [&](Transfer*, const TransferWindow::Send&) {
          if (ended) ++late;
        },
        [&](const absl::Status&, int64_t) { ended = true; });
    transfer->Start();
    std::atomic<bool> go = false;
    std::thread other([&] {
      go = true;
      for (int part = 0; part < kParts; ++part) {
        transfer->Answer({0, part, 1, absl::Time()}, absl::OkStatus());
      }
    });
    while (!go) std::this_thread::yield();
    transfer->Answer({1, 0, 1, absl::Time()},
                     absl::InvalidArgumentError("refused"));
    other.join();
    EXPECT_TRUE(ended);
    late_sends += late;
  }
  EXPECT_EQ(late_sends, 0);
}

// Who started the transfer may be slow: the parts that answers make room for do
// not wait for it.
TEST(TransferTest, WhoBringsAnAnswerSendsTheNextPart) {
  const MonotonicClock clock{};
  TimerQueue timers;
  TransferOptions options;
  options.window_parts = 1;
  absl::Notification sending;
  absl::Notification go_on;
  std::vector<std::thread::id> senders(2);
  const auto transfer = std::make_shared<Transfer>(
      Transfer::Environment{&clock, &timers},
      TransferWindow(options, {{1, 1}}, {"/job:ps/task:0"}),
      [&](Transfer*, const TransferWindow::Send& send) {
        senders[send.part] = std::this_thread::get_id();
        if (send.part != 0) return go_on.Notify();
        sending.Notify();
        go_on.WaitForNotification();
      },
      [](const absl::Status&, int64_t) {});
  std::thread starter([&] { transfer->Start(); });
  const std::thread::id starter_id = starter.get_id();
  sending.WaitForNotification();
  transfer->Answer({0, 0, 1, absl::Time()}, absl::OkStatus());
  starter.join();
  EXPECT_EQ(senders[0], starter_id);
  EXPECT_EQ(senders[1], std::this_thread::get_id());
}

// A link that answers at once.
TEST(TransferTest, SendsNoPartFromInsideAnother) {
  const MonotonicClock clock{};
  TimerQueue timers;
  int depth = 0;
  int sent = 0;
  const auto transfer = std::make_shared<Transfer>(
      Transfer::Environment{&clock, &timers},
      TransferWindow({}, {std::vector<int64_t>(kParts, 1)}, {"/job:ps/task:0"}),
      [&](Transfer* self, const TransferWindow::Send& send) {
        EXPECT_EQ(depth++, 0);
        ++sent;
        self->Answer(send, absl::OkStatus());
        --depth;
      },
      [](const absl::Status& outcome, int64_t) { EXPECT_TRUE(outcome.ok()); });
  transfer->Start();
  EXPECT_EQ(sent, kParts);
}

TEST(TransferTest, CancelWaitsForASendOnItsWay) {
  const MonotonicClock clock{};
  TimerQueue timers;
  absl::Notification sending;
  absl::Notification go_on;
  std::atomic<bool> sent = false;
  const auto transfer = std::make_shared<Transfer>(
      Transfer::Environment{&clock, &timers},
      TransferWindow({}, {{1}}, {"/job:ps/task:0"}),
      [&](Transfer*, const TransferWindow::Send&) {
        sending.Notify();
        go_on.WaitForNotification();
        sent = true;
      },
      [](const absl::Status&, int64_t) {});
  std::thread sender([&] { transfer->Start(); });
  sending.WaitForNotification();
  absl::Notification cancelled;
  std::thread closer([&] {
    transfer->Cancel(absl::CancelledError("closing"));
    EXPECT_TRUE(sent) << "the link may be destroyed now, but it is in use";
    cancelled.Notify();
  });
  EXPECT_FALSE(cancelled.WaitForNotificationWithTimeout(kLongEnough));
  go_on.Notify();
  closer.join();
  sender.join();
}

}  // namespace
}  // namespace muster
