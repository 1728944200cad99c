#include "common/tls/tls_channel.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file_descriptor.h"
#include "common/base/status_macros.h"
#include "common/rpc/byte_channel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "openssl/ssl.h"
#include "tests/common/tls/raw_tls_peer.h"
#include "tests/common/tls/tls_channel_fixture.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kExchanged = 8 << 20;

class TlsChannelTest : public TlsChannelFixture {};

// Sends bytes, and receives the other's, in pieces of all sizes.
class Stream {
 public:
  Stream(ByteChannel* channel, unsigned int seed)
      : channel_(channel), random_(seed), sent_(kExchanged, 0) {
    for (size_t at = 0; at < kExchanged; at += sizeof(uint32_t)) {
      const uint32_t number = random_();
      std::memcpy(sent_.data() + at, &number, sizeof(number));
    }
  }

  const std::string& sent() const { return sent_; }
  const std::string& received() const { return received_; }
  int times_full() const { return times_full_; }
  bool is_over() const {
    return at_ == sent_.size() && received_.size() == kExchanged;
  }

  absl::Status Go() {
    const std::vector<iovec> from = Cut(&sent_, at_);
    if (!from.empty()) {
      ASSIGN_OR_RETURN(const size_t size, channel_->Send(from));
      times_full_ += size == 0 ? 1 : 0;
      at_ += size;
    }
    RETURN_IF_ERROR(channel_->Flush().status());
    std::string into(40000, 0);
    ASSIGN_OR_RETURN(const size_t size, channel_->Receive(Cut(&into, 0)));
    received_.append(into, 0, size);
    return absl::OkStatus();
  }

 private:
  std::vector<iovec> Cut(std::string* bytes, size_t from) {
    std::vector<iovec> pieces;
    const size_t end = std::min(bytes->size(), from + (40 << 10));
    while (from < end && pieces.size() < 5) {
      const size_t most = random_() % 2 == 0 ? 200 : 30000;
      const size_t size = std::min<size_t>(1 + random_() % most, end - from);
      pieces.push_back({bytes->data() + from, size});
      from += size;
    }
    return pieces;
  }

  ByteChannel* const channel_;
  std::mt19937 random_;
  std::string sent_;
  size_t at_ = 0;
  std::string received_;
  int times_full_ = 0;
};

void ExpectWholeExchange(const Channel& one, const Channel& other) {
  Stream left(one.get(), 1);
  Stream right(other.get(), 2);
  while (!left.is_over() || !right.is_over()) {
    ASSERT_THAT(left.Go(), IsOk());
    ASSERT_THAT(right.Go(), IsOk());
  }
  EXPECT_TRUE(left.received() == right.sent());
  EXPECT_TRUE(right.received() == left.sent());
  EXPECT_GT(left.times_full(), 0);
  EXPECT_GT(right.times_full(), 0);
}

TEST_F(TlsChannelTest, BothDirectionsThroughAFullSocket_ArriveWhole) {
  const auto [dialer, accepter] = Connect();
  ExpectWholeExchange(dialer, accepter);
}

TEST_F(TlsChannelTest, NewKeysWhileTheSocketIsFull_LoseNothing) {
  records_per_key_ = 3;
  const auto [dialer, accepter] = Connect();
  ExpectWholeExchange(dialer, accepter);
}

TEST_F(TlsChannelTest, AfterTheHandshake_EachHasTheOthersCertificate) {
  auto [one, other] = MakePair();
  Guest dialer(Dial(std::move(one), *own_));
  Guest accepter(Accept(std::move(other)));
  EXPECT_EQ(dialer->PeerCertificate(), "");
  Meet(&dialer, &accepter);
  EXPECT_EQ(dialer->PeerCertificate(), own_->Read("ps-0.pem"));
  EXPECT_EQ(accepter->PeerCertificate(), own_->Read("worker-1.pem"));
  EXPECT_FALSE(dialer->is_duplex());
  EXPECT_THAT(said_.lines(), IsEmpty());
}

TEST_F(TlsChannelTest, AConnection_HasOneCipherAndCannotBeResumed) {
  auto [one, other] = MakePair();
  RawTlsPeer peer(std::move(one));
  peer.Show(*own_, "worker-1");
  const Guest accepter = AcceptRaw(std::move(other), &peer);
  EXPECT_EQ(peer.Receive(), "x");
  EXPECT_STREQ(SSL_get_version(peer.ssl()), "TLSv1.3");
  EXPECT_STREQ(SSL_get_cipher_name(peer.ssl()), "TLS_AES_128_GCM_SHA256");
  EXPECT_EQ(peer.tickets(), 0);
  EXPECT_EQ(SSL_SESSION_is_resumable(SSL_get0_session(peer.ssl())), 0);
}

TEST_F(TlsChannelTest, AHandshakeThatStops_WaitsAndEndsWithTheConnection) {
  auto [one, far] = MakePair();
  auto [near, other] = MakePair();
  const Channel dialer = Dial(std::move(one), *own_);
  const Channel accepter = Accept(std::move(other));
  ASSERT_THAT(dialer->Handshake(), IsOkAndHolds(false));
  ASSERT_EQ(Forward(far, near, 100), 100);
  for (int i = 0; i < kTurns; ++i) {
    EXPECT_THAT(accepter->Handshake(), IsOkAndHolds(false));
    EXPECT_FALSE(accepter->wants_to_send());
  }
  near = FileDescriptor();
  EXPECT_THAT(accepter->Handshake(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("closed the connection during the TLS")));
  far = FileDescriptor();
  EXPECT_THAT(dialer->Handshake(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(TlsChannelTest, AHandshakeIntoAFullSocket_WantsToSend) {
  auto [one, far] = MakePair();
  auto [near, other] = MakePair();
  const Channel dialer = Dial(std::move(one), *own_);
  std::string filler(1 << 10, 0);
  size_t filled = 0;
  while (send(other.get(), filler.data(), filler.size(), 0) > 0) ++filled;
  const Channel accepter = Accept(std::move(other));
  ASSERT_THAT(dialer->Handshake(), IsOkAndHolds(false));
  Forward(far, near);
  EXPECT_THAT(accepter->Handshake(), IsOkAndHolds(false));
  EXPECT_TRUE(accepter->wants_to_send());
  // Room, without another byte from the peer.
  for (; filled > 0; --filled) {
    ASSERT_EQ(recv(near.get(), filler.data(), filler.size(), 0), filler.size());
  }
  EXPECT_THAT(accepter->Handshake(), IsOkAndHolds(false));
  EXPECT_FALSE(accepter->wants_to_send());
  while (Forward(near, far) > 0) dialer->Handshake().IgnoreError();
  EXPECT_THAT(dialer->Handshake(), IsOkAndHolds(true));
}

TEST_F(TlsChannelTest, APeerThatCloses_IsUnavailableAndKillsNobody) {
  auto [dialer, accepter] = Connect();
  accepter.reset();
  std::string bytes(1 << 10, 'x');
  const iovec piece = PieceOf(&bytes);
  ASSERT_THAT(dialer->Send({&piece, 1}), IsOk());
  EXPECT_THAT(dialer->Flush(), StatusIs(absl::StatusCode::kUnavailable));
  auto [second_dialer, second_accepter] = Connect();
  second_dialer.reset();
  EXPECT_THAT(second_accepter->Receive({&piece, 1}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("the peer closed the connection")));
}

TEST_F(TlsChannelTest, ReceivedBytes_AreReportedUntilTheyAreGivenOut) {
  auto [one, far] = MakePair();
  auto [near, other] = MakePair();
  const Channel dialer = Dial(std::move(one), *own_);
  const Channel accepter = Accept(std::move(other));
  for (int i = 0; i < kTurns; ++i) {
    ASSERT_THAT(dialer->Handshake(), IsOk());
    Forward(far, near);
    ASSERT_THAT(accepter->Handshake(), IsOk());
    Forward(near, far);
  }
  std::string bytes(100, 'x');
  const iovec piece = PieceOf(&bytes);
  const iovec half = {bytes.data(), 60};
  ASSERT_THAT(dialer->Send({&piece, 1}), IsOkAndHolds(100));
  EXPECT_EQ(Forward(far, near), 0);
  ASSERT_THAT(dialer->Flush(), IsOkAndHolds(true));
  ASSERT_EQ(Forward(far, near, 50), 50);
  EXPECT_THAT(accepter->Receive({&half, 1}), IsOkAndHolds(0));
  // Less than a record: only the socket can bring more.
  EXPECT_FALSE(accepter->has_received());
  ASSERT_GT(Forward(far, near), 0);
  EXPECT_THAT(accepter->Receive({&half, 1}), IsOkAndHolds(60));
  EXPECT_TRUE(accepter->has_received());
  EXPECT_THAT(accepter->Receive({&half, 1}), IsOkAndHolds(40));
  EXPECT_THAT(accepter->Receive({&half, 1}), IsOkAndHolds(0));
  EXPECT_FALSE(accepter->has_received());
}

TEST_F(TlsChannelTest, ARecordThatWasChanged_IsNotGivenOut) {
  auto [one, other] = MakePair();
  const FileDescriptor wire(dup(one.get()));
  const Channel dialer = Dial(std::move(one), *own_);
  const Channel accepter = Accept(std::move(other));
  for (int i = 0; i < kTurns; ++i) {
    ASSERT_THAT(dialer->Handshake(), IsOk());
    ASSERT_THAT(accepter->Handshake(), IsOk());
  }
  const std::string record = absl::StrCat(
      std::string("\x17\x03\x03\x00\x20", 5), std::string(32, 'x'));
  ASSERT_TRUE(WriteAll(wire.get(), record));
  std::string bytes(100, 0);
  const iovec piece = PieceOf(&bytes);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(accepter->Receive({&piece, 1}),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr("decryption failed or bad record mac")));
  }
}

TEST_F(TlsChannelTest, EveryFewRecords_ThereAreNewKeys) {
  records_per_key_ = 3;
  auto [one, other] = MakePair();
  RawTlsPeer peer(std::move(one));
  peer.Show(*own_, "worker-1");
  Guest accepter = AcceptRaw(std::move(other), &peer);
  ASSERT_EQ(peer.Receive(), "x");
  std::string byte = "y";
  const iovec piece = PieceOf(&byte);
  for (int i = 0; i < 9; ++i) {
    ASSERT_THAT(accepter->Send({&piece, 1}), IsOkAndHolds(1));
    ASSERT_THAT(accepter->Flush(), IsOkAndHolds(true));
    ASSERT_EQ(peer.Receive(), "y");
  }
  EXPECT_EQ(peer.key_updates(), 3);
}

TEST_F(TlsChannelTest, NewKeysThatThePeerAsksFor_ComeWithTheNextBytes) {
  auto [one, other] = MakePair();
  RawTlsPeer peer(std::move(one));
  peer.Show(*own_, "worker-1");
  Guest accepter = AcceptRaw(std::move(other), &peer);
  ASSERT_EQ(peer.Receive(), "x");
  ASSERT_EQ(SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
  ASSERT_EQ(SSL_write(peer.ssl(), "z", 1), 1);
  std::string byte = "y";
  const iovec piece = PieceOf(&byte);
  ASSERT_THAT(accepter->Receive({&piece, 1}), IsOkAndHolds(1));
  EXPECT_EQ(byte, "z");
  ASSERT_THAT(accepter->Send({&piece, 1}), IsOkAndHolds(1));
  ASSERT_THAT(accepter->Flush(), IsOkAndHolds(true));
  EXPECT_EQ(peer.Receive(), "z");
  EXPECT_EQ(peer.key_updates(), 1);
}

TEST_F(TlsChannelTest, KeysAskedForWithoutEnd_HoldUpWhoAsks) {
  auto [one, other] = MakePair();
  RawTlsPeer peer(std::move(one));
  peer.Show(*own_, "worker-1");
  Guest accepter = AcceptRaw(std::move(other), &peer);
  ASSERT_EQ(peer.Receive(), "x");
  std::string byte(1, 0);
  const iovec piece = PieceOf(&byte);
  while (!accepter->wants_to_send()) {
    ASSERT_EQ(SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
    ASSERT_EQ(SSL_do_handshake(peer.ssl()), 1);
    ASSERT_THAT(accepter->Receive({&piece, 1}), IsOkAndHolds(0));
  }
  ASSERT_EQ(SSL_write(peer.ssl(), "z", 1), 1);
  for (bool is_sent = false; !is_sent; is_sent = *accepter->Flush()) {
    EXPECT_EQ(peer.Receive(), "");
  }
  EXPECT_THAT(accepter->Receive({&piece, 1}), IsOkAndHolds(1));
  EXPECT_EQ(byte, "z");
}

TEST_F(TlsChannelTest, SmallPieces_ShareARecord) {
  auto [one, other] = MakePair();
  RawTlsPeer peer(std::move(one));
  peer.Show(*own_, "worker-1");
  Guest accepter = AcceptRaw(std::move(other), &peer);
  ASSERT_EQ(peer.Receive(), "x");
  const int before = peer.records();
  std::string bytes = "0123456789";
  std::vector<iovec> pieces;
  for (char& byte : bytes) pieces.push_back({&byte, 1});
  ASSERT_THAT(accepter->Send(pieces), IsOkAndHolds(bytes.size()));
  ASSERT_THAT(accepter->Flush(), IsOkAndHolds(true));
  EXPECT_EQ(peer.Receive(), bytes);
  EXPECT_EQ(peer.records(), before + 1);
}

}  // namespace
}  // namespace muster
