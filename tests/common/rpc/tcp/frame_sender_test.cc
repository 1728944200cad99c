#include "common/rpc/tcp/frame_sender.h"

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/rpc/tcp/frame_receiver.h"
#include "common/tensor/buffer_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/rpc/tcp/memory_channel.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using Progress = FrameSender::Progress;

// Both ends of a connection that takes few bytes at a time.
struct SmallPair {
  SmallPair() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const int size = 8192;
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    near = MakePlainChannel(FileDescriptor(ends[0]));
    far = MakePlainChannel(FileDescriptor(ends[1]));
  }
  std::unique_ptr<ByteChannel> near;
  std::unique_ptr<ByteChannel> far;
};

void AwaitSocket(const ByteChannel& channel, int16_t events) {
  pollfd poll = {channel.fd(), events, 0};
  ASSERT_EQ(::poll(&poll, 1, /*timeout=*/-1), 1);
}

FrameHeader OfCall(uint64_t call) {
  FrameHeader header;
  header.call = call;
  return header;
}

ReceivedFrame Await(FrameReceiver* receiver, ByteChannel* channel) {
  for (;;) {
    auto frame = receiver->Next(channel);
    EXPECT_THAT(frame, IsOk());
    if (!frame.ok()) return {};
    if (frame->has_value()) return **std::move(frame);
    AwaitSocket(*channel, POLLIN);
  }
}

TEST(FrameSenderTest, OneFrame_IsOneSend) {
  FrameSender sender;
  MemoryChannel channel;
  FrameHeader header = OfCall(7);
  header.kind = 3;
  absl::Cord data("abc");
  data.Append(absl::MakeCordFromExternal("defgh", [] {}));
  sender.Add(header, "fields", data);
  EXPECT_TRUE(sender.Holds(7));
  EXPECT_FALSE(sender.Holds(8));
  EXPECT_FALSE(sender.empty());
  EXPECT_THAT(sender.Pump(&channel), IsOkAndHolds(Progress::kDone));
  EXPECT_EQ(channel.sent(),
            EncodeFrameHeader({7, 3, 6, 8, 0}) + "fieldsabcdefgh");
  EXPECT_EQ(channel.sends(), 1);
  EXPECT_FALSE(sender.Holds(7));
  EXPECT_TRUE(sender.empty());
}

TEST(FrameSenderTest, ByteAfterByte_KeepsTheOrder) {
  FrameSender sender;
  MemoryChannel channel("", [n = 0]() mutable { return ++n % 2; });
  sender.Add(OfCall(1), "a", absl::Cord("one"));
  sender.Add(OfCall(2), "", absl::Cord());
  sender.Add(OfCall(3), "b", absl::Cord("three"));
  const size_t size = 3 * kFrameHeaderBytes + 10;
  for (size_t sent = 1; sent <= size; ++sent) {
    const auto progress = sender.Pump(&channel);
    EXPECT_EQ(channel.sent().size(), sent);
    EXPECT_THAT(progress, IsOkAndHolds(sent < size ? Progress::kSocketFull
                                                   : Progress::kDone));
    EXPECT_EQ(sender.Holds(1), sent < kFrameHeaderBytes + 4);
  }
  EXPECT_EQ(channel.sent(), EncodeFrameHeader({1, 0, 1, 3, 0}) + "aone" +
                                EncodeFrameHeader({2, 0, 0, 0, 0}) +
                                EncodeFrameHeader({3, 0, 1, 5, 0}) + "bthree");
}

TEST(FrameSenderTest, DroppedFrame_IsNotSentUnlessItComesNext) {
  FrameSender sender;
  MemoryChannel channel;
  int held = 0;
  for (int call : {1, 2, 3}) {
    ++held;
    sender.Add(OfCall(call), "",
               absl::MakeCordFromExternal("data", [&held] { --held; }));
  }
  sender.Drop(1);
  sender.Drop(2);
  EXPECT_EQ(held, 2);
  EXPECT_TRUE(sender.Holds(1));
  EXPECT_FALSE(sender.Holds(2));
  EXPECT_THAT(sender.Pump(&channel), IsOkAndHolds(Progress::kDone));
  EXPECT_EQ(channel.sent(), EncodeFrameHeader({1, 0, 0, 4, 0}) + "data" +
                                EncodeFrameHeader({3, 0, 0, 4, 0}) + "data");
  EXPECT_EQ(sender.sent_bytes(), channel.sent().size());
}

TEST(FrameSenderTest, ChannelThatKeepsBytes_IsNotDone) {
  FrameSender sender;
  MemoryChannel channel;
  channel.set_can_flush(false);
  sender.Add(OfCall(1), "", absl::Cord());
  EXPECT_THAT(sender.Pump(&channel), IsOkAndHolds(Progress::kSocketFull));
  EXPECT_TRUE(sender.empty());
  channel.set_can_flush(true);
  EXPECT_THAT(sender.Pump(&channel), IsOkAndHolds(Progress::kDone));
}

// The data's owner is told, outside the lock, and answers with a frame of its
// own, which the same Pump sends.
TEST(FrameSenderTest, ReleaseThatAddsAndPumps_IsSentToo) {
  FrameSender sender;
  MemoryChannel channel;
  int released = 0;
  sender.Add(OfCall(1), "", absl::MakeCordFromExternal("data", [&] {
               ++released;
               EXPECT_FALSE(sender.Holds(1));
               sender.Add(OfCall(2), "", absl::Cord());
               EXPECT_THAT(sender.Pump(&channel),
                           IsOkAndHolds(Progress::kDone));
             }));
  EXPECT_THAT(sender.Pump(&channel), IsOkAndHolds(Progress::kDone));
  EXPECT_EQ(released, 1);
  EXPECT_TRUE(sender.empty());
  EXPECT_EQ(channel.sent().size(), 2 * kFrameHeaderBytes + 4);
}

// Others add while one flushes: it does not go before it has sent theirs.
TEST(FrameSenderTest, FlushIsThePumpingThreadsAlone) {
  class FlushingChannel : public MemoryChannel {
   public:
    explicit FlushingChannel(FrameSender* sender) : sender_(sender) {}
    absl::StatusOr<bool> Flush() override {
      if (!std::exchange(has_added_, true)) {
        sender_->Add(OfCall(2), "", absl::Cord());
        EXPECT_THAT(sender_->Pump(this), IsOkAndHolds(Progress::kDone));
        EXPECT_EQ(sends(), 1) << "two send at once";
      }
      return MemoryChannel::Flush();
    }

   private:
    FrameSender* const sender_;
    bool has_added_ = false;
  };
  FrameSender sender;
  FlushingChannel channel(&sender);
  sender.Add(OfCall(1), "", absl::Cord());
  EXPECT_THAT(sender.Pump(&channel), IsOkAndHolds(Progress::kDone));
  EXPECT_TRUE(sender.empty());
  EXPECT_EQ(channel.sends(), 2);
}

TEST(FrameSenderTest, PeerThatIsGone_IsUnavailable) {
  SmallPair pair;
  pair.far = nullptr;
  FrameSender sender;
  sender.Add(OfCall(1), "", absl::Cord("data"));
  EXPECT_THAT(sender.Pump(pair.near.get()),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(sender.Pump(pair.near.get()),
              StatusIs(absl::StatusCode::kUnavailable))
      << "the first one still counts as pumping";
}

TEST(FrameSenderTest, FullSocket_GoesOnWhereItStopped) {
  SmallPair pair;
  FrameSender sender;
  const std::string data(1 << 20, 'd');
  int released = 0;
  sender.Add(OfCall(1), "fields",
             absl::MakeCordFromExternal(data, [&released] { ++released; }));
  ASSERT_THAT(sender.Pump(pair.near.get()),
              IsOkAndHolds(Progress::kSocketFull));
  EXPECT_EQ(released, 0);
  std::thread far([&] {
    BufferPool pool;
    FrameReceiver receiver(&pool, nullptr);
    const ReceivedFrame frame = Await(&receiver, pair.far.get());
    EXPECT_EQ(frame.fields, "fields");
    EXPECT_TRUE(frame.data() == data);
  });
  for (;;) {
    const auto progress = sender.Pump(pair.near.get());
    if (!progress.ok() || *progress == Progress::kDone) break;
    AwaitSocket(*pair.near, POLLOUT);
  }
  far.join();
  EXPECT_EQ(released, 1);
  EXPECT_TRUE(sender.empty());
}

TEST(FrameSenderTest, SeveralThreadsAddAndPump_EachFrameArrivesWhole) {
  constexpr int kThreads = 4, kFrames = 200;
  SmallPair pair;
  FrameSender sender;
  std::atomic<int> released{0};
  const std::string data(3000, 'd');
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kFrames; ++i) {
        sender.Add(OfCall(t * kFrames + i), std::string(t, 'f'),
                   absl::MakeCordFromExternal(data, [&] { ++released; }));
        for (;;) {
          const auto progress = sender.Pump(pair.near.get());
          ASSERT_THAT(progress, IsOk());
          if (*progress == Progress::kDone) break;
          AwaitSocket(*pair.near, POLLOUT);
        }
      }
    });
  }
  BufferPool pool;
  FrameReceiver receiver(&pool, nullptr);
  std::vector<int> next(kThreads, 0);
  for (int n = 0; n < kThreads * kFrames; ++n) {
    const ReceivedFrame frame = Await(&receiver, pair.far.get());
    const size_t t = frame.header.call / kFrames;
    ASSERT_LT(t, kThreads);
    EXPECT_EQ(frame.header.call % kFrames, next[t]++);
    EXPECT_EQ(frame.fields.size(), t);
    EXPECT_TRUE(frame.data() == data);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(released, kThreads * kFrames);
  EXPECT_TRUE(sender.empty());
}

}  // namespace
}  // namespace muster
