#include "worker/session/event_queue.h"

#include <gtest/gtest.h>

#include <thread>

namespace muster {
namespace {

TEST(EventQueueTest, KeepsTheOrder) {
  EventQueue queue;
  queue.Push(SignalEvent{1});
  queue.Push(SignalEvent{2});
  EXPECT_EQ(std::get<SignalEvent>(*queue.Pop(absl::ZeroDuration())).signal, 1);
  EXPECT_EQ(std::get<SignalEvent>(*queue.Pop(absl::ZeroDuration())).signal, 2);
}

TEST(EventQueueTest, WhatIsUrgentCanGoBeforeTheOthers) {
  EventQueue queue;
  queue.Push(TickEvent{});
  queue.Push(SignalEvent{1});
  queue.Push(WatchEvent{JobState()});
  EXPECT_TRUE(std::holds_alternative<SignalEvent>(*queue.PopUrgent()));
  EXPECT_TRUE(std::holds_alternative<WatchEvent>(*queue.PopUrgent()));
  EXPECT_FALSE(queue.PopUrgent().has_value());
  EXPECT_TRUE(
      std::holds_alternative<TickEvent>(*queue.Pop(absl::ZeroDuration())));
}

TEST(EventQueueTest, GivesNothingAfterTheTimeout) {
  EventQueue queue;
  EXPECT_FALSE(queue.Pop(absl::ZeroDuration()).has_value());
}

TEST(EventQueueTest, WakesForAnEventOfAnotherThread) {
  EventQueue queue;
  std::thread other([&queue] { queue.Push(TickEvent{}); });
  EXPECT_TRUE(queue.Pop(absl::InfiniteDuration()).has_value());
  other.join();
}

}  // namespace
}  // namespace muster
