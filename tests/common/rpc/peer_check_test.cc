#include "common/rpc/peer_check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/file_descriptor.h"
#include "common/rpc/status_conversion.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// gRPC 1.51's words for a connection that came to nothing.
const grpc::Status kClosed(
    grpc::StatusCode::UNAVAILABLE,
    "failed to connect to all addresses; last error: UNAVAILABLE: "
    "ipv4:127.0.0.1:7: Socket closed");
const grpc::Status kLate(grpc::StatusCode::DEADLINE_EXCEEDED,
                         "Deadline Exceeded");

std::string Describe(const std::string& bytes, bool is_closed = false) {
  return DescribeAnswer("host:7", {bytes, /*is_connected=*/true, is_closed});
}

// Another program: says its words to each who connects, and hangs up.
class OtherProgram {
 public:
  explicit OtherProgram(std::string words)
      : words_(std::move(words)), socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_.get(), raw, size), 0);
    EXPECT_EQ(listen(socket_.get(), 8), 0);
    EXPECT_EQ(getsockname(socket_.get(), raw, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~OtherProgram() {
    shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  int callers() const { return callers_; }

 private:
  void Serve() {
    for (;;) {
      const FileDescriptor caller(accept(socket_.get(), nullptr, nullptr));
      if (!caller.valid()) return;
      ++callers_;
      send(caller.get(), words_.data(), words_.size(), MSG_NOSIGNAL);
    }
  }

  const std::string words_;
  const FileDescriptor socket_;
  int port_ = 0;
  std::atomic<int> callers_ = 0;
  std::thread thread_;
};

TEST(DescribeAnswerTest, ABannerOrStatusLine_IsQuoted) {
  EXPECT_EQ(Describe("HTTP/1.0 404 File not found\r\nServer: x\r\n"),
            "What listens at host:7 is no ps task of Muster (it answered "
            "'HTTP/1.0 404 File not found')");
  EXPECT_THAT(Describe("SSH-2.0-OpenSSH_9.2\r\n"),
              HasSubstr("(it answered 'SSH-2.0-OpenSSH_9.2')"));
}

TEST(DescribeAnswerTest, WhatItSent_IsEscapedAndCut) {
  const std::string text = Describe(absl::StrCat(
      "220 \x1b[2J\x07", std::string(1, '\0'), std::string(1000, 'x')));
  EXPECT_THAT(text, AllOf(HasSubstr("220 \\x1b[2J\\x07"),
                          Not(HasSubstr("\x1b")), HasSubstr("...')")));
  EXPECT_LT(text.size(), 200);
}

TEST(DescribeAnswerTest, ATlsServerOfAnotherKind_IsSaid) {
  EXPECT_THAT(Describe(std::string("\x15\x03\x01\0\x02\x02\x46", 7)),
              HasSubstr("is no ps task of Muster (it answered as a TLS "
                        "server of another kind)"));
}

TEST(DescribeAnswerTest, APortThatClosesAtOnce_IsSaid) {
  EXPECT_THAT(Describe("", /*is_closed=*/true),
              HasSubstr("is no ps task of Muster (it answered nothing and "
                        "closed the connection"));
}

TEST(DescribeAnswerTest, OneThatSaysNothing_MayBeAPsThatStandsStill) {
  EXPECT_EQ(Describe(""),
            "What listens at host:7 takes connections and says nothing: a ps "
            "task that stands still, or another program");
}

TEST(DescribeAnswerTest, WhatMayBeAPsTask_IsNotTalkedOf) {
  // SETTINGS with one setting, and more.
  EXPECT_EQ(Describe(std::string("\0\0\x06\x04\0\0\0\0\0\0\x05\0\x10\0\0", 15)),
            "");
  EXPECT_EQ(Describe(absl::StrCat(kTlsAloneLine, "\r\n")), "");
  EXPECT_EQ(DescribeAnswer("host:7", PortAnswer()), "") << "not reached";
}

TEST(PeerCheckTest, AsksWhatGrpcCouldNotTalkTo_OnceIn10Seconds) {
  const OtherProgram other("SSH-2.0-x\r\n");
  FakeClock clock;
  PeerCheck check(other.address(), &clock);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(check.Explain(kClosed),
              absl::StrCat("What listens at ", other.address(),
                           " is no ps task of Muster (it answered "
                           "'SSH-2.0-x')"));
  }
  EXPECT_EQ(other.callers(), 1);
  clock.Advance(PeerCheck::kBetween);
  EXPECT_THAT(check.Explain(kLate), HasSubstr("'SSH-2.0-x'"));
  EXPECT_EQ(other.callers(), 2);
}

TEST(PeerCheckTest, DoesNotAskWhereNothingListens_NorAPsThatIsLate) {
  const OtherProgram other("220 x\r\n");
  FakeClock clock;
  PeerCheck check(other.address(), &clock);
  EXPECT_EQ(check.Explain({grpc::StatusCode::UNAVAILABLE,
                           "failed to connect to all addresses; last error: "
                           "UNKNOWN: Connection refused"}),
            "");
  EXPECT_EQ(check.Explain({grpc::StatusCode::UNAVAILABLE, "Socket closed"}),
            "");
  check.OnAnswer();
  EXPECT_EQ(check.Explain(kLate), "");
  EXPECT_EQ(other.callers(), 0);
}

TEST(PeerCheckTest, AnotherGrpcServer_IsToldFromMusters) {
  FakeClock clock;
  PeerCheck check("host:7", &clock);
  EXPECT_EQ(check.Explain({grpc::StatusCode::UNIMPLEMENTED, "unknown service"}),
            "What listens at host:7 is no ps task of Muster (it answered "
            "UNIMPLEMENTED, as another gRPC server: unknown service)");
  EXPECT_THAT(check.Explain({grpc::StatusCode::PERMISSION_DENIED,
                             "Received http2 header with status: 403"}),
              HasSubstr("is no ps task of Muster"));
  EXPECT_EQ(check.Explain(ToGrpcStatus(absl::UnimplementedError("a layout"))),
            "");
  EXPECT_EQ(check.Explain({grpc::StatusCode::PERMISSION_DENIED, "a role"}), "");
}

}  // namespace
}  // namespace muster
