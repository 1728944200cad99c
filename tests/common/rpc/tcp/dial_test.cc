// DialForTensors.
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/tcp/frame_header.h"
#include "common/rpc/tcp/greeting.h"
#include "common/rpc/tensor_magic.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::string_view kToken = "0123456789abcdef0123456789abcdef";

// Listens at ::1 or 127.0.0.1 alone. `port`: the one that was given.
FileDescriptor Listen(int family, int* port) {
  FileDescriptor fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_loopback;
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const address = family == AF_INET6 ? reinterpret_cast<sockaddr*>(&v6)
                                           : reinterpret_cast<sockaddr*>(&v4);
  socklen_t size = family == AF_INET6 ? sizeof(v6) : sizeof(v4);
  if (!fd.valid() || bind(fd.get(), address, size) != 0) return {};
  EXPECT_EQ(listen(fd.get(), 8), 0);
  EXPECT_EQ(getsockname(fd.get(), address, &size), 0);
  *port = ntohs(family == AF_INET6 ? v6.sin6_port : v4.sin_port);
  return fd;
}

absl::StatusOr<std::unique_ptr<ByteChannel>> Plain(FileDescriptor socket) {
  return MakePlainChannel(std::move(socket));
}

void SendBytes(int fd, absl::string_view bytes) {
  EXPECT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), bytes.size());
}

std::string Welcome(const absl::Status& status) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const auto near = MakePlainChannel(FileDescriptor(ends[0]));
  const FileDescriptor far(ends[1]);
  FrameSender sender;
  AddWelcome(status, &sender);
  EXPECT_THAT(sender.Pump(near.get()), IsOk());
  char bytes[1000];
  return {bytes, static_cast<size_t>(recv(far.get(), bytes, 1000, 0))};
}

class DialTest : public testing::Test {
 protected:
  DialTest() : listener_(Listen(AF_INET, &port_)) {
    dial_.address = absl::StrCat("127.0.0.1:", port_);
    dial_.task = "/job:ps/task:0";
    dial_.token = std::string(kToken);
    dial_.open = &Plain;
    dial_.patience = absl::Seconds(60);
  }

  // Dials a ps that reads the greeting, does `answer`, and closes.
  absl::StatusOr<std::unique_ptr<ByteChannel>> Dial(
      const std::function<void(int fd)>& answer) {
    std::thread ps([&] {
      const FileDescriptor fd(accept(listener_.get(), nullptr, nullptr));
      std::string greeting(kTensorMagic.size() + kToken.size(), '\0');
      EXPECT_EQ(recv(fd.get(), greeting.data(), greeting.size(), MSG_WAITALL),
                greeting.size());
      EXPECT_EQ(greeting, absl::StrCat(kTensorMagic, kToken));
      answer(fd.get());
    });
    auto channel = DialForTensors(dial_);
    ps.join();
    return channel;
  }

  int port_ = 0;
  FileDescriptor listener_;
  TensorDial dial_;
};

TEST_F(DialTest, Welcomed_LeavesTheBytesBehindTheWelcome) {
  const auto channel = Dial([](int fd) {
    SendBytes(fd, absl::StrCat(Welcome(absl::OkStatus()), "frame"));
  });
  ASSERT_THAT(channel, IsOk());
  char rest[6] = {};
  const iovec piece = {rest, sizeof(rest)};
  EXPECT_THAT((*channel)->Receive({&piece, 1}), IsOkAndHolds(5));
  EXPECT_STREQ(rest, "frame");
}

TEST_F(DialTest, WelcomeInPieces_IsOne) {
  EXPECT_THAT(Dial([](int fd) {
                for (const char byte : Welcome(absl::OkStatus())) {
                  SendBytes(fd, absl::string_view(&byte, 1));
                }
              }),
              IsOk());
}

TEST_F(DialTest, Refusal_IsThePssStatus) {
  EXPECT_THAT(Dial([](int fd) {
                SendBytes(fd,
                          Welcome(absl::UnauthenticatedError("no such offer")));
              }),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       absl::StrCat("/job:ps/task:0 at ", dial_.address,
                                    ": no such offer")));
}

TEST_F(DialTest, SilentListener_IsDeadlineExceeded) {
  dial_.patience = absl::Milliseconds(50);
  EXPECT_THAT(DialForTensors(dial_),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("/job:ps/task:0 at 127.0.0.1:"),
                             HasSubstr("says nothing"))));
}

TEST_F(DialTest, HttpAnswer_IsShown) {
  EXPECT_THAT(Dial([](int fd) {
                SendBytes(fd, "HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n");
              }),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("no ps task of Muster"),
                             HasSubstr("'HTTP/1.1 400 Bad Request\\r\\n"))));
}

TEST_F(DialTest, ShortAnswer_IsShown) {
  EXPECT_THAT(Dial([](int fd) { SendBytes(fd, "ERR\n"); }),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("it answered 'ERR\\n'")));
}

TEST_F(DialTest, WelcomeWithData_IsNoPs) {
  EXPECT_THAT(
      Dial([](int fd) {
        SendBytes(fd, EncodeFrameHeader({0, 0, 0, /*data_bytes=*/1, 0}));
      }),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("no ps task of Muster")));
}

TEST_F(DialTest, ClosedWithoutAnAnswer_IsUnavailable) {
  EXPECT_THAT(Dial([](int) {}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("takes no connection for tensors")));
}

// Under TLS 1.3 it comes only with the first bytes from the ps.
TEST_F(DialTest, PeerThatDoesNotBelieve_IsUnauthenticated) {
  class UnbelievedChannel : public ByteChannel {
   public:
    explicit UnbelievedChannel(FileDescriptor socket)
        : socket_(std::move(socket)) {}
    int fd() const override { return socket_.get(); }
    bool is_duplex() const override { return false; }
    absl::StatusOr<bool> Handshake() override { return true; }
    absl::StatusOr<size_t> Receive(absl::Span<const iovec>) override {
      return absl::UnauthenticatedError("alert: unknown CA");
    }
    absl::StatusOr<size_t> Send(absl::Span<const iovec> pieces) override {
      return pieces[0].iov_len;
    }
    absl::StatusOr<bool> Flush() override { return true; }
    bool has_received() const override { return false; }
    bool wants_to_send() const override { return false; }
    std::string PeerCertificate() const override { return ""; }

   private:
    const FileDescriptor socket_;
  };
  dial_.open = [](FileDescriptor socket) {
    return std::make_unique<UnbelievedChannel>(std::move(socket));
  };
  EXPECT_THAT(DialForTensors(dial_),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("/job:ps/task:0 at "),
                             HasSubstr("alert: unknown CA"))));
}

TEST_F(DialTest, ChannelThatCannotBeOpened_IsItsError) {
  dial_.open = [](FileDescriptor) {
    return absl::UnauthenticatedError("no keys");
  };
  EXPECT_THAT(DialForTensors(dial_),
              StatusIs(absl::StatusCode::kUnauthenticated, "no keys"));
}

TEST_F(DialTest, ReadableStopFd_IsCancelled) {
  const FileDescriptor stop(eventfd(1, EFD_CLOEXEC));
  dial_.stop_fd = stop.get();
  EXPECT_THAT(DialForTensors(dial_), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(DialTest, StopWhileItWaits_IsCancelled) {
  const FileDescriptor stop(eventfd(0, EFD_CLOEXEC));
  dial_.stop_fd = stop.get();
  EXPECT_THAT(Dial([&](int fd) {
                eventfd_write(stop.get(), 1);
                // Until it has hung up.
                char byte;
                recv(fd, &byte, 1, 0);
              }),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(DialTest, NobodyListens_IsUnavailable) {
  listener_ = FileDescriptor();
  EXPECT_THAT(DialForTensors(dial_), StatusIs(absl::StatusCode::kUnavailable,
                                              HasSubstr("Connection refused")));
}

TEST_F(DialTest, UnknownHost_IsUnavailable) {
  dial_.address = "no-such-host.invalid:1";
  EXPECT_THAT(
      DialForTensors(dial_),
      StatusIs(absl::StatusCode::kUnavailable,
               HasSubstr("/job:ps/task:0 at no-such-host.invalid:1: ")));
}

// "localhost" may be both ::1 and 127.0.0.1, of which one answers.
TEST_F(DialTest, LocalhostOfEitherFamily_IsFound) {
  for (const int family : {AF_INET, AF_INET6}) {
    listener_ = Listen(family, &port_);
    if (!listener_.valid()) continue;  // A machine without IPv6.
    dial_.address = family == AF_INET ? absl::StrCat("localhost:", port_)
                                      : absl::StrCat("[::1]:", port_);
    EXPECT_THAT(Dial([](int fd) { SendBytes(fd, Welcome(absl::OkStatus())); }),
                IsOk())
        << dial_.address;
  }
}

}  // namespace
}  // namespace muster
