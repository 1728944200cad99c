#include "common/shared_memory/local_socket.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "common/shared_memory/handshake.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/shared_memory/open_descriptors.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kSoon = absl::Seconds(20);

// Two sockets that are connected under a name of their own.
class LocalSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<FileDescriptor> listener = ListenLocal(name_);
    ASSERT_THAT(listener, IsOk());
    listener_ = *std::move(listener);
    absl::StatusOr<FileDescriptor> near = ConnectLocal(name_);
    ASSERT_THAT(near, IsOk());
    near_ = *std::move(near);
    far_ = FileDescriptor(
        accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(far_.valid());
  }

  // Sends one byte with two descriptors of a pipe.
  void SendTwoDescriptors() {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    char byte = 0;
    iovec piece = {&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ends))] = {};
    msghdr message = {};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(ends));
    std::memcpy(CMSG_DATA(c), ends, sizeof(ends));
    ASSERT_EQ(sendmsg(near_.get(), &message, 0), 1);
    close(ends[0]);
    close(ends[1]);
  }

  const std::string name_ = "muster-test-" + NewSecret();
  FileDescriptor listener_;
  FileDescriptor near_;
  FileDescriptor far_;
};

TEST_F(LocalSocketTest, CarriesPacketsOneByOne) {
  ASSERT_THAT(SendPacket(near_, "first"), IsOk());
  ASSERT_THAT(SendPacket(near_, "second"), IsOk());
  EXPECT_EQ(ReceivePacket(far_, 100, kSoon)->bytes, "first");
  const absl::StatusOr<Packet> second = ReceivePacket(far_, 100, kSoon);
  EXPECT_EQ(second->bytes, "second");
  EXPECT_FALSE(second->fd.valid());
}

TEST_F(LocalSocketTest, CarriesADescriptor) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor reader(ends[0]);
  {
    const FileDescriptor writer(ends[1]);
    ASSERT_THAT(SendPacket(near_, "take this", writer.get()), IsOk());
  }
  const absl::StatusOr<Packet> packet = ReceivePacket(far_, 100, kSoon);
  ASSERT_THAT(packet, IsOk());
  ASSERT_TRUE(packet->fd.valid());
  EXPECT_NE(fcntl(packet->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(write(packet->fd.get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read(reader.get(), &byte, 1), 1);
}

TEST_F(LocalSocketTest, DescriptorsTooManyAreClosed) {
  const int before = OpenDescriptors();
  ASSERT_NO_FATAL_FAILURE(SendTwoDescriptors());
  { ReceivePacket(far_, 100, kSoon).IgnoreError(); }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(LocalSocketTest, ADescriptorThatFindsNoRoomIsAnError) {
  ASSERT_THAT(SendPacket(near_, "take this", near_.get()), IsOk());
  const NoDescriptorsLeft none;
  EXPECT_THAT(ReceivePacket(far_, 100, kSoon),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(LocalSocketTest, ALongPacketIsRefused) {
  ASSERT_THAT(SendPacket(near_, std::string(101, 'x')), IsOk());
  EXPECT_THAT(ReceivePacket(far_, 100, kSoon),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("more than 100 bytes")));
}

TEST_F(LocalSocketTest, SilenceHasALimit) {
  EXPECT_THAT(ReceivePacket(far_, 100, absl::Milliseconds(1)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(LocalSocketTest, ASignalEndsNoWait) {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  std::atomic<bool> started = false;
  absl::StatusOr<Packet> packet = absl::UnknownError("none");
  std::thread receiver([&] {
    started = true;
    packet = ReceivePacket(far_, 100, kSoon);
  });
  while (!started) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) {
    pthread_kill(receiver.native_handle(), SIGUSR1);
    std::this_thread::yield();
  }
  ASSERT_THAT(SendPacket(near_, "late"), IsOk());
  receiver.join();
  ASSERT_THAT(packet, IsOk());
  EXPECT_EQ(packet->bytes, "late");
}

TEST_F(LocalSocketTest, APeerThatIsGoneIsNoticedAtOnce) {
  near_ = FileDescriptor();
  EXPECT_THAT(ReceivePacket(far_, 100, kSoon),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(SendPacket(far_, "hello?"),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(LocalSocketTest, ThisUserIsTheSameUser) {
  EXPECT_THAT(CheckPeerUser(near_), IsOk());
  EXPECT_THAT(CheckPeerUser(far_), IsOk());
  EXPECT_THAT(CheckPeerUser(FileDescriptor()),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(LocalSocketTest, ANameHasOneListenerAndEndsWithIt) {
  EXPECT_THAT(ListenLocal(name_), StatusIs(absl::StatusCode::kUnavailable));
  listener_ = FileDescriptor();
  EXPECT_THAT(ConnectLocal(name_), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ListenLocal(name_), IsOk());
}

TEST_F(LocalSocketTest, NamesHaveALimit) {
  for (const size_t length : {0, 108, 1000}) {
    EXPECT_THAT(ConnectLocal(std::string(length, 'n')),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << length;
  }
  EXPECT_THAT(ListenLocal(NewSecret() + std::string(75, 'n')), IsOk());
}

TEST_F(LocalSocketTest, WithoutDescriptorsItIsAnError) {
  const NoDescriptorsLeft none;
  EXPECT_THAT(ConnectLocal(name_),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace muster
