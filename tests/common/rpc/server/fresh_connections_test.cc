#include "common/rpc/server/fresh_connections.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/reported_lines.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A peer's end of a connection that was accepted.
class FreshConnectionsTest : public testing::Test {
 protected:
  FreshConnections Make(Protocol protocol) {
    return FreshConnections(
        protocol, said_.reporter(), &clock_,
        [this](FileDescriptor one) { taken_.push_back(std::move(one)); });
  }
  FileDescriptor Connect(FreshConnections* fresh) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    fresh->Add(FileDescriptor(ends[0]));
    return FileDescriptor(ends[1]);
  }
  void Look(FreshConnections* fresh) {
    std::vector<pollfd> polls;
    fresh->AppendTo(&polls);
    poll(polls.data(), polls.size(), 0);
    fresh->Look(polls);
  }
  void Send(const FileDescriptor& peer, const std::string& bytes) {
    EXPECT_EQ(write(peer.get(), bytes.data(), bytes.size()), bytes.size());
  }
  // All that comes until the end.
  std::string Receive(const FileDescriptor& peer) {
    std::string all;
    char bytes[256];
    for (ssize_t n; (n = read(peer.get(), bytes, sizeof(bytes))) > 0;) {
      all.append(bytes, n);
    }
    return all;
  }

  FakeClock clock_;
  ReportedLines said_;
  std::vector<FileDescriptor> taken_;
};

constexpr char kPreface[] = "PRI * HTTP/2.0";
constexpr char kHello[] = "\x16\x03\x01";

TEST_F(FreshConnectionsTest, TheRightProtocolIsTakenAtItsFirstByte) {
  for (const auto& [protocol, bytes] :
       {std::make_pair(Protocol::kPlaintext, kPreface),
        std::make_pair(Protocol::kTls, kHello)}) {
    taken_.clear();
    FreshConnections fresh = Make(protocol);
    const FileDescriptor peer = Connect(&fresh);
    Look(&fresh);
    EXPECT_THAT(taken_, IsEmpty());
    Send(peer, bytes);
    Look(&fresh);
    EXPECT_THAT(taken_, SizeIs(1));
    EXPECT_TRUE(fresh.empty());
  }
  EXPECT_THAT(said_.lines(), IsEmpty());
}

TEST_F(FreshConnectionsTest, APlaintextClientOfATlsServerIsToldWhy) {
  FreshConnections fresh = Make(Protocol::kTls);
  const FileDescriptor peer = Connect(&fresh);
  Send(peer, kPreface);
  Look(&fresh);
  EXPECT_THAT(taken_, IsEmpty());
  EXPECT_THAT(Receive(peer), HasSubstr("speaks TLS alone"));
  EXPECT_THAT(said_.lines(), ElementsAre(HasSubstr("it speaks no TLS")));
}

TEST_F(FreshConnectionsTest, ATlsClientOfAPlaintextServerIsSaidOnceInAWhile) {
  FreshConnections fresh = Make(Protocol::kPlaintext);
  for (int i = 0; i < 3; ++i) {
    const FileDescriptor peer = Connect(&fresh);
    Send(peer, kHello);
    Look(&fresh);
  }
  EXPECT_THAT(said_.lines(), ElementsAre(HasSubstr("it speaks TLS")));
  EXPECT_THAT(taken_, SizeIs(3)) << "gRPC hangs up on them";
}

TEST_F(FreshConnectionsTest, WhoSaysNothingIsLetGo) {
  FreshConnections fresh = Make(Protocol::kTls);
  const FileDescriptor silent = Connect(&fresh);
  { const FileDescriptor gone = Connect(&fresh); }
  Look(&fresh);
  EXPECT_FALSE(fresh.empty());
  clock_.Advance(FreshConnections::kPatience);
  Look(&fresh);
  EXPECT_TRUE(fresh.empty());
  EXPECT_EQ(Receive(silent), "");
  EXPECT_THAT(taken_, IsEmpty());
  EXPECT_THAT(said_.lines(), IsEmpty());
}

TEST_F(FreshConnectionsTest, TooManySilentOnesHoldUpNobody) {
  FreshConnections fresh = Make(Protocol::kPlaintext);
  std::vector<FileDescriptor> peers;
  for (size_t i = 0; i < FreshConnections::kMost; ++i) {
    peers.push_back(Connect(&fresh));
  }
  EXPECT_THAT(taken_, IsEmpty());
  peers.push_back(Connect(&fresh));
  EXPECT_THAT(taken_, SizeIs(1));
}

}  // namespace
}  // namespace muster
