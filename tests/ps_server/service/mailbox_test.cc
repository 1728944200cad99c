#include "ps_server/service/mailbox.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(MailboxTest, RunsTasksInTheOrderOfPosting) {
  std::vector<int> ran;
  Mailbox mailbox;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(mailbox.Post([&ran, i] { ran.push_back(i); }));
  }
  mailbox.Close();
  ASSERT_EQ(ran.size(), 1000);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(ran[i], i);
}

TEST(MailboxTest, TakesPostsFromManyThreads) {
  int sum = 0;  // no lock: the mailbox's thread alone adds
  Mailbox mailbox;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        EXPECT_TRUE(mailbox.Post([&sum] { ++sum; }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  mailbox.Close();
  EXPECT_EQ(sum, 2000);
}

TEST(MailboxTest, RefusesAfterCloseAndClosesTwice) {
  Mailbox mailbox;
  mailbox.Close();
  mailbox.Close();
  EXPECT_FALSE(mailbox.Post([] { FAIL(); }));
}

TEST(MailboxTest, CallsIdleAfterTasksAndWhenItsTimeHasPassed) {
  std::atomic<int> calls{0};
  absl::Notification third;
  Mailbox mailbox([&] {
    if (++calls == 3) third.Notify();
    return absl::Milliseconds(1);
  });
  third.WaitForNotification();
}

TEST(MailboxTest, FreesATaskBeforeTheNextRuns) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  bool was_freed = false;
  Mailbox mailbox;
  ASSERT_TRUE(mailbox.Post([held = std::move(held)] {}));
  ASSERT_TRUE(mailbox.Post([&] { was_freed = watch.expired(); }));
  mailbox.Close();
  EXPECT_TRUE(was_freed);
}

}  // namespace
}  // namespace muster
