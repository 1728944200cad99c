#include "common/rpc/byte_channel.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

class PlainChannelTest : public testing::Test {
 protected:
  PlainChannelTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    near_ = MakePlainChannel(FileDescriptor(ends[0]));
    far_ = MakePlainChannel(FileDescriptor(ends[1]));
  }

  std::unique_ptr<ByteChannel> near_;
  std::unique_ptr<ByteChannel> far_;
};

TEST_F(PlainChannelTest, NeedsNoHandshake) {
  EXPECT_THAT(near_->Handshake(), IsOkAndHolds(true));
  EXPECT_TRUE(near_->is_duplex());
  EXPECT_FALSE(near_->has_received());
  EXPECT_FALSE(near_->wants_to_send());
  EXPECT_EQ(near_->PeerCertificate(), "");
  EXPECT_NE(fcntl(near_->fd(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(PlainChannelTest, PiecesArriveInOtherPieces) {
  std::string a = "ab", b = "cdefg";
  const iovec out[] = {{a.data(), a.size()}, {b.data(), b.size()}};
  EXPECT_THAT(near_->Send(out), IsOkAndHolds(7));
  EXPECT_THAT(near_->Flush(), IsOkAndHolds(true));
  std::string c(4, '.'), d(4, '.');
  const iovec in[] = {{c.data(), c.size()}, {d.data(), d.size()}};
  EXPECT_THAT(far_->Receive(in), IsOkAndHolds(7));
  EXPECT_EQ(c + d, "abcdefg.");
  EXPECT_THAT(far_->Receive(in), IsOkAndHolds(0)) << "none are there";
}

TEST_F(PlainChannelTest, FullSocket_AcceptsNothing) {
  std::string bytes(1 << 20, 'x');
  const iovec piece = {bytes.data(), bytes.size()};
  size_t total = 0;
  for (;;) {
    const auto sent = near_->Send({&piece, 1});
    ASSERT_THAT(sent, IsOk());
    if (*sent == 0) break;
    total += *sent;
  }
  EXPECT_GT(total, 0);
}

TEST_F(PlainChannelTest, MorePiecesThanTheSystemTakes_AreMovedInPart) {
  std::string bytes(IOV_MAX + 10, 'x');
  std::vector<iovec> pieces;
  for (char& byte : bytes) pieces.push_back({&byte, 1});
  EXPECT_THAT(near_->Send(pieces), IsOkAndHolds(IOV_MAX));
  EXPECT_THAT(far_->Receive(pieces), IsOkAndHolds(IOV_MAX));
}

TEST_F(PlainChannelTest, PeerThatIsGone_IsUnavailable) {
  far_ = nullptr;
  char byte = 'x';
  const iovec piece = {&byte, 1};
  EXPECT_THAT(near_->Receive({&piece, 1}),
              StatusIs(absl::StatusCode::kUnavailable,
                       "the peer closed the connection"));
  EXPECT_THAT(near_->Send({&piece, 1}),
              StatusIs(absl::StatusCode::kUnavailable,
                       "the connection is broken: Broken pipe"));
}

}  // namespace
}  // namespace muster
