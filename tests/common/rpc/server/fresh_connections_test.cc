#include "common/rpc/server/fresh_connections.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/tensor_magic.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/reported_lines.h"

namespace muster {
namespace {

using ::testing::AllOf;
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
  FreshConnections MakeWithTensors(Protocol protocol) {
    return FreshConnections(
        protocol, said_.reporter(), &clock_,
        [this](FileDescriptor one) { taken_.push_back(std::move(one)); },
        [this](FileDescriptor one) { tensors_.push_back(std::move(one)); });
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

  std::vector<FileDescriptor> ConnectMany(size_t count,
                                          FreshConnections* fresh) {
    std::vector<FileDescriptor> peers;
    while (peers.size() < count) peers.push_back(Connect(fresh));
    return peers;
  }
  static bool IsOpen(const FileDescriptor& peer) {
    char byte = 0;
    return recv(peer.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

  FakeClock clock_;
  ReportedLines said_;
  std::vector<FileDescriptor> taken_;
  std::vector<FileDescriptor> tensors_;
};

constexpr char kPreface[] = "PRI * HTTP/2.0";
constexpr char kHello[] = "\x16\x03\x01";
constexpr Protocol kAll[] = {Protocol::kAny, Protocol::kPlaintext,
                             Protocol::kTls};

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

TEST_F(FreshConnectionsTest, AFirstByteWithinThePatience_IsTaken) {
  FreshConnections fresh = Make(Protocol::kPlaintext);
  const FileDescriptor slow = Connect(&fresh);
  clock_.Advance(FreshConnections::kPatience - absl::Milliseconds(1));
  Look(&fresh);
  Send(slow, kPreface);
  Look(&fresh);
  EXPECT_THAT(taken_, SizeIs(1));
}

TEST_F(FreshConnectionsTest, BeyondTheMostSilentOnes_TheOldestIsClosed) {
  FreshConnections fresh = Make(Protocol::kPlaintext);
  const auto peers = ConnectMany(FreshConnections::kMost, &fresh);
  EXPECT_TRUE(IsOpen(peers[0]));
  const FileDescriptor newest = Connect(&fresh);
  EXPECT_FALSE(IsOpen(peers[0]));
  EXPECT_TRUE(IsOpen(peers[1]));
  EXPECT_TRUE(IsOpen(newest));
  EXPECT_THAT(taken_, IsEmpty()) << "none is handed over unread";
  Send(newest, kPreface);
  Look(&fresh);
  EXPECT_THAT(taken_, SizeIs(1));
}

TEST_F(FreshConnectionsTest, ClosedSilentOnes_AreSaidOnceInAWhileWithTheCount) {
  FreshConnections fresh = Make(Protocol::kPlaintext);
  const auto peers = ConnectMany(FreshConnections::kMost + 3, &fresh);
  EXPECT_THAT(said_.lines(), ElementsAre(AllOf(HasSubstr("oldest of 256"),
                                               HasSubstr("; 1 closed"))));
  said_.Clear();
  clock_.Advance(absl::Seconds(10));
  const FileDescriptor another = Connect(&fresh);
  EXPECT_THAT(said_.lines(), ElementsAre(HasSubstr("; 4 closed")));
}

TEST_F(FreshConnectionsTest, AnOldestThatHasSpokenSinceTheLook_IsTaken) {
  FreshConnections fresh = Make(Protocol::kPlaintext);
  const auto peers = ConnectMany(FreshConnections::kMost, &fresh);
  Send(peers[0], kPreface);
  const FileDescriptor newest = Connect(&fresh);
  EXPECT_THAT(taken_, SizeIs(1));
  EXPECT_TRUE(IsOpen(peers[0]));
  EXPECT_THAT(said_.lines(), IsEmpty());
}

TEST_F(FreshConnectionsTest, OneForTensors_GoesToTheirTakerUnread) {
  for (const Protocol protocol : kAll) {
    tensors_.clear();
    FreshConnections fresh = MakeWithTensors(protocol);
    FileDescriptor peer = Connect(&fresh);
    Send(peer, absl::StrCat(kTensorMagic, "token"));
    Look(&fresh);
    peer = FileDescriptor();
    ASSERT_THAT(tensors_, SizeIs(1));
    EXPECT_EQ(Receive(tensors_[0]), "\xa7MUSTER1token");
  }
  EXPECT_THAT(taken_, IsEmpty());
  EXPECT_THAT(said_.lines(), IsEmpty());
}

TEST_F(FreshConnectionsTest, OneForTensorsWhereNoneAreOffered_IsClosedAndSaid) {
  for (const Protocol protocol : {Protocol::kPlaintext, Protocol::kTls}) {
    said_.Clear();
    FreshConnections fresh = Make(protocol);
    const FileDescriptor peer = Connect(&fresh);
    Send(peer, std::string(kTensorMagic));
    Look(&fresh);
    EXPECT_FALSE(IsOpen(peer));
    EXPECT_THAT(said_.lines(), ElementsAre(HasSubstr("offers none (--link)")));
  }
  EXPECT_THAT(taken_, IsEmpty());
}

TEST_F(FreshConnectionsTest, WhereAnyProtocolIsServed_OnlyTensorsAreLookedFor) {
  FreshConnections all = Make(Protocol::kAny);
  const FileDescriptor unread = Connect(&all);
  EXPECT_THAT(taken_, SizeIs(1));
  taken_.clear();
  for (const char* const first : {kPreface, kHello, "GET", "x"}) {
    FreshConnections fresh = MakeWithTensors(Protocol::kAny);
    const FileDescriptor peer = Connect(&fresh);
    EXPECT_FALSE(fresh.empty());
    Send(peer, first);
    Look(&fresh);
  }
  EXPECT_THAT(taken_, SizeIs(4));
  EXPECT_THAT(tensors_, IsEmpty());
}

}  // namespace
}  // namespace muster
