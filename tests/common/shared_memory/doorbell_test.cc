#include "common/shared_memory/doorbell.h"

#include <sys/socket.h>

#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

class DoorbellTest : public testing::Test {
 protected:
  DoorbellTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    near_ = FileDescriptor(ends[0]);
    far_ = FileDescriptor(ends[1]);
  }

  const std::unique_ptr<SharedRing> ring_ = std::make_unique<SharedRing>();
  RingWriter writer_{ring_.get()};
  RingReader reader_{ring_.get()};
  FileDescriptor near_;
  FileDescriptor far_;
};

TEST_F(DoorbellTest, FindsWhatIsThere) {
  writer_.Publish({1});
  EXPECT_EQ(AwaitEntry(&reader_, near_, kLong), RingEvent::kEntry);
}

TEST_F(DoorbellTest, AWaitHasALimit) {
  EXPECT_EQ(AwaitEntry(&reader_, near_, absl::Milliseconds(1)),
            RingEvent::kTimeout);
  EXPECT_EQ(ring_->reader_sleeps, 0u);
}

TEST_F(DoorbellTest, ABellWakesTheSleeper) {
  RingEvent event = RingEvent::kTimeout;
  std::thread sleeper([&] { event = AwaitEntry(&reader_, near_, kLong); });
  while (ring_->reader_sleeps == 0) std::this_thread::yield();
  EXPECT_TRUE(writer_.Publish({1}));
  RingBell(far_);
  sleeper.join();
  EXPECT_EQ(event, RingEvent::kEntry);
}

TEST_F(DoorbellTest, ThePeersEndWakesTheSleeper) {
  RingEvent event = RingEvent::kTimeout;
  std::thread sleeper([&] { event = AwaitEntry(&reader_, near_, kLong); });
  while (ring_->reader_sleeps == 0) std::this_thread::yield();
  far_ = FileDescriptor();
  sleeper.join();
  EXPECT_EQ(event, RingEvent::kPeerGone);
}

TEST_F(DoorbellTest, TheOwnShutdownWakesTheSleeper) {
  RingEvent event = RingEvent::kTimeout;
  std::thread sleeper([&] { event = AwaitEntry(&reader_, near_, kLong); });
  while (ring_->reader_sleeps == 0) std::this_thread::yield();
  shutdown(near_.get(), SHUT_RDWR);
  sleeper.join();
  EXPECT_EQ(event, RingEvent::kPeerGone);
}

TEST_F(DoorbellTest, WhatWasWrittenComesBeforeTheEnd) {
  writer_.Publish({1});
  far_ = FileDescriptor();
  EXPECT_EQ(AwaitEntry(&reader_, near_, kLong), RingEvent::kEntry);
  EXPECT_TRUE((*reader_.Take()).has_value());
  EXPECT_EQ(AwaitEntry(&reader_, near_, kLong), RingEvent::kPeerGone);
}

TEST_F(DoorbellTest, BellsForNothingAreTaken) {
  for (int i = 0; i < 1000; ++i) RingBell(far_);
  int waits = 0;
  while (AwaitEntry(&reader_, near_, absl::Milliseconds(1)) ==
             RingEvent::kTimeout &&
         recv(near_.get(), &waits, 1, MSG_DONTWAIT | MSG_PEEK) > 0) {
    ASSERT_LT(++waits, 1000);
  }
  EXPECT_EQ(AwaitEntry(&reader_, near_, absl::Milliseconds(1)),
            RingEvent::kTimeout);
}

TEST_F(DoorbellTest, RingingWhereNobodyIsDoesNothing) {
  far_ = FileDescriptor();
  RingBell(near_);
  RingBell(FileDescriptor());
}

}  // namespace
}  // namespace muster
