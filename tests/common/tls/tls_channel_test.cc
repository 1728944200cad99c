#include "common/tls/tls_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/base/status_macros.h"
#include "common/rpc/byte_channel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "openssl/err.h"
#include "openssl/ssl.h"
#include "tests/testing/certificates.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Channel = std::unique_ptr<ByteChannel>;

constexpr size_t kExchanged = 8 << 20;
// Each turn of a handshake over a socket pair does what it can.
constexpr int kTurns = 10;

std::pair<FileDescriptor, FileDescriptor> MakePair() {
  int fds[2] = {};
  EXPECT_EQ(
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
      0);
  // So small that a record fills it.
  const int size = 4096;
  for (const int fd : fds) {
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
  }
  return {FileDescriptor(fds[0]), FileDescriptor(fds[1])};
}

iovec PieceOf(std::string* bytes) { return {bytes->data(), bytes->size()}; }

// Passes on bytes that are there, at most `most` of them.
size_t Forward(const FileDescriptor& from, const FileDescriptor& to,
               size_t most = 1 << 20) {
  std::string bytes(most, 0);
  const ssize_t size = recv(from.get(), bytes.data(), bytes.size(), 0);
  if (size <= 0) return 0;
  EXPECT_EQ(send(to.get(), bytes.data(), size, MSG_NOSIGNAL), size);
  return static_cast<size_t>(size);
}

// One end of a meeting: shakes hands, then sends a byte and wants one.
class Guest {
 public:
  explicit Guest(Channel channel) : channel_(std::move(channel)) {}

  ByteChannel* operator->() const { return channel_.get(); }
  // OK when the other end's byte has come.
  const absl::Status& status() const { return status_; }
  bool is_over() const { return !absl::IsDeadlineExceeded(status_); }

  // Goes on as far as it can. Closes the connection after an error.
  void Go() {
    if (is_over()) return;
    const absl::StatusOr<bool> has_met = Meet();
    if (has_met.ok() && !*has_met) return;
    status_ = has_met.status();
    if (!status_.ok()) channel_.reset();
  }

 private:
  absl::StatusOr<bool> Meet() {
    if (!has_sent_) {
      ASSIGN_OR_RETURN(const bool is_done, channel_->Handshake());
      if (!is_done) return false;
      std::string byte = "x";
      const iovec piece = PieceOf(&byte);
      RETURN_IF_ERROR(channel_->Send({&piece, 1}).status());
      RETURN_IF_ERROR(channel_->Flush().status());
      has_sent_ = true;
    }
    std::string byte(1, 0);
    const iovec piece = PieceOf(&byte);
    ASSIGN_OR_RETURN(const size_t size, channel_->Receive({&piece, 1}));
    return size == 1;
  }

  Channel channel_;
  bool has_sent_ = false;
  absl::Status status_ = absl::DeadlineExceededError("it has not met anybody");
};

void Meet(Guest* one, Guest* other) {
  for (int i = 0; i < kTurns; ++i) {
    one->Go();
    other->Go();
  }
}

// Another program with OpenSSL, which believes everybody.
class RawPeer {
 public:
  explicit RawPeer(FileDescriptor socket) : socket_(std::move(socket)) {
    BIO* const bio = BIO_new_socket(socket_.get(), BIO_NOCLOSE);
    SSL_set_bio(ssl(), bio, bio);
    SSL_set_connect_state(ssl());
    SSL_set_app_data(ssl(), this);
    SSL_set_msg_callback(ssl(), &RawPeer::Note);
  }

  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  SSL* ssl() const { return ssl_.get(); }
  void Show(const Certificates& certificates, const std::string& stem) {
    const std::string path = absl::StrCat(certificates.folder(), "/", stem);
    SSL_use_certificate_file(ssl(), (path + ".pem").c_str(), SSL_FILETYPE_PEM);
    SSL_use_PrivateKey_file(ssl(), (path + ".key").c_str(), SSL_FILETYPE_PEM);
  }
  std::string Receive() {
    std::string bytes(1 << 16, 0);
    size_t size = 0;
    SSL_read_ex(ssl(), bytes.data(), bytes.size(), &size);
    return bytes.substr(0, size);
  }

  // What came in.
  int records() const { return records_; }
  int key_updates() const { return key_updates_; }
  int tickets() const { return tickets_; }

 private:
  static void Note(int is_sent, int, int type, const void* bytes, size_t,
                   SSL* ssl, void*) {
    if (is_sent != 0) return;
    auto& peer = *static_cast<RawPeer*>(SSL_get_app_data(ssl));
    const char first = *static_cast<const char*>(bytes);
    if (type == SSL3_RT_HEADER) ++peer.records_;
    if (type != SSL3_RT_HANDSHAKE) return;
    if (first == SSL3_MT_KEY_UPDATE) ++peer.key_updates_;
    if (first == SSL3_MT_NEWSESSION_TICKET) ++peer.tickets_;
  }

  const FileDescriptor socket_;
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_{
      SSL_CTX_new(TLS_method()), &SSL_CTX_free};
  const std::unique_ptr<SSL, void (*)(SSL*)> ssl_{SSL_new(context_.get()),
                                                  &SSL_free};
  int records_ = 0;
  int key_updates_ = 0;
  int tickets_ = 0;
};

class TlsChannelTest : public testing::Test {
 protected:
  static std::unique_ptr<Certificates> Make(
      const std::string& cluster = "muster") {
    auto made = Certificates::Make(cluster);
    EXPECT_THAT(made, IsOk());
    return *std::move(made);
  }

  Channel Open(FileDescriptor socket, const Certificates& certificates,
               const std::string& stem, TlsChannel::Options options) {
    const std::string chain = certificates.Read(stem + ".pem");
    const auto context =
        MakeTlsContext(chain, certificates.Read(stem + ".key"));
    EXPECT_THAT(context, IsOk());
    options.trust = std::make_shared<PeerTrust>(
        Identity{"muster", "worker", 1}, certificates.Read("ca.pem"),
        [this] { return now_; }, said_.reporter(), SystemClock());
    auto made = TlsChannel::Create(std::move(socket), *context, options);
    EXPECT_THAT(made, IsOk());
    return *std::move(made);
  }
  // Worker 1's connection to the ps of this index.
  Channel Dial(FileDescriptor socket, const Certificates& certificates,
               int ps = 0) {
    TlsChannel::Options options;
    options.peer = TlsSide::kServer;
    options.wanted = Identity{"muster", "ps", ps};
    options.records_per_key = records_per_key_;
    return Open(std::move(socket), certificates, "worker-1", options);
  }
  // Ps 0's end.
  Channel Accept(FileDescriptor socket) {
    TlsChannel::Options options;
    options.records_per_key = records_per_key_;
    return Open(std::move(socket), *own_, "ps-0", options);
  }

  // Both ends of a connection that stands.
  std::pair<Channel, Channel> Connect() {
    auto [one, other] = MakePair();
    Channel dialer = Dial(std::move(one), *own_);
    Channel accepter = Accept(std::move(other));
    bool is_done = false;
    for (int i = 0; i < kTurns && !is_done; ++i) {
      const bool is_dialled = *dialer->Handshake();
      is_done = *accepter->Handshake() && is_dialled;
    }
    EXPECT_TRUE(is_done);
    return {std::move(dialer), std::move(accepter)};
  }
  // What the ends of a new connection to ps 0 say.
  std::pair<absl::Status, absl::Status> Meeting(
      const Certificates& certificates, int ps = 0) {
    auto [one, other] = MakePair();
    Guest dialer(Dial(std::move(one), certificates, ps));
    Guest accepter(Accept(std::move(other)));
    Meet(&dialer, &accepter);
    return {dialer.status(), accepter.status()};
  }
  // An end of ps 0 that `peer` has shaken hands with, as far as they agree.
  Guest AcceptRaw(FileDescriptor socket, RawPeer* peer) {
    Guest accepter(Accept(std::move(socket)));
    for (int i = 0; i < kTurns; ++i) {
      SSL_do_handshake(peer->ssl());
      accepter.Go();
    }
    return accepter;
  }

  const std::unique_ptr<Certificates> own_ = Make();
  absl::Time now_ = absl::Now();
  uint64_t records_per_key_ = TlsChannel::Options().records_per_key;
  ReportedLines said_;
};

// Sends bytes, and receives the other's, in pieces of all sizes.
class Stream {
 public:
  Stream(ByteChannel* channel, unsigned int seed)
      : channel_(channel), random_(seed), sent_(kExchanged, 0) {
    std::generate(sent_.begin(), sent_.end(),
                  [this] { return static_cast<char>(random_()); });
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

TEST_F(TlsChannelTest, AnotherAuthority_IsRefusedAndToldSo) {
  const auto [dialer, accepter] = Meeting(*Make());
  EXPECT_THAT(dialer, StatusIs(absl::StatusCode::kUnauthenticated,
                               AllOf(HasSubstr("its certificate CN=ps-0"),
                                     HasSubstr("is of another authority"))));
  EXPECT_THAT(accepter,
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("the peer refused this task's certificate "
                                 "(TLS alert 42, bad certificate)")));
}

TEST_F(TlsChannelTest, AnotherTaskThanTheOneDialled_IsRefused) {
  EXPECT_THAT(Meeting(*own_, /*ps=*/1).first,
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("wanted that of /job:ps/task:1")));
}

TEST_F(TlsChannelTest, AServerWhoseCertificateHasEnded_IsRefused) {
  now_ += absl::Hours(25);
  EXPECT_THAT(Meeting(*own_).first, StatusIs(absl::StatusCode::kUnauthenticated,
                                             HasSubstr("ended on")));
}

// Who dials has finished its handshake by then.
TEST_F(TlsChannelTest, AClientThatIsRefused_IsToldSo) {
  const auto is_told = StatusIs(absl::StatusCode::kUnauthenticated,
                                AllOf(HasSubstr("the peer refused this task's "
                                                "certificate"),
                                      HasSubstr("its log says why")));
  Certificates::Leaf leaf = own_->LeafOf("worker-1");
  leaf.uris = {"spiffe://other/job/worker/task/1"};
  ASSERT_THAT(own_->Issue("worker-1", leaf), IsOk());
  const auto [stranger, accepter] = Meeting(*own_);
  EXPECT_THAT(accepter, StatusIs(absl::StatusCode::kUnauthenticated,
                                 HasSubstr("of cluster 'other'")));
  EXPECT_THAT(stranger, is_told);

  leaf = own_->LeafOf("worker-1");
  leaf.not_after = now_ - absl::Hours(1);
  ASSERT_THAT(own_->Issue("worker-1", leaf), IsOk());
  const auto [late, second_accepter] = Meeting(*own_);
  EXPECT_THAT(second_accepter, StatusIs(absl::StatusCode::kUnauthenticated,
                                        HasSubstr("ended on")));
  EXPECT_THAT(late, is_told);
  EXPECT_THAT(said_.lines(), Contains(HasSubstr("refused a client: its "
                                                "certificate CN=worker-1")));
}

TEST_F(TlsChannelTest, ARefusalThatASendMeetsFirst_IsReadAllTheSame) {
  Certificates::Leaf leaf = own_->LeafOf("worker-1");
  leaf.uris = {"spiffe://other/job/worker/task/1"};
  ASSERT_THAT(own_->Issue("worker-1", leaf), IsOk());
  auto [one, other] = MakePair();
  const Channel dialer = Dial(std::move(one), *own_);
  Guest accepter(Accept(std::move(other)));
  while (!*dialer->Handshake()) accepter.Go();
  for (int i = 0; i < kTurns; ++i) accepter.Go();
  ASSERT_THAT(accepter.status(), StatusIs(absl::StatusCode::kUnauthenticated));
  std::string token(16, 'x');
  const iovec piece = PieceOf(&token);
  ASSERT_THAT(dialer->Send({&piece, 1}), IsOk());
  EXPECT_THAT(dialer->Flush(), StatusIs(absl::StatusCode::kUnauthenticated,
                                        HasSubstr("refused this task's")));
}

TEST_F(TlsChannelTest, WithoutACertificate_IsRefusedAndToldSo) {
  auto [one, other] = MakePair();
  RawPeer peer(std::move(one));
  const Guest accepter = AcceptRaw(std::move(other), &peer);
  EXPECT_THAT(accepter.status(),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("peer did not return a certificate")));
  ERR_clear_error();
  EXPECT_EQ(peer.Receive(), "");
  EXPECT_EQ(ERR_GET_REASON(ERR_peek_error()),
            SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_REQUIRED);
}

TEST_F(TlsChannelTest, OlderTls_IsRefused) {
  auto [one, other] = MakePair();
  RawPeer peer(std::move(one));
  peer.Show(*own_, "worker-1");
  SSL_set_min_proto_version(peer.ssl(), 0);
  SSL_set_max_proto_version(peer.ssl(), TLS1_2_VERSION);
  EXPECT_THAT(AcceptRaw(std::move(other), &peer).status(),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("unsupported protocol")));
}

TEST_F(TlsChannelTest, AConnection_HasOneCipherAndCannotBeResumed) {
  auto [one, other] = MakePair();
  RawPeer peer(std::move(one));
  peer.Show(*own_, "worker-1");
  const Guest accepter = AcceptRaw(std::move(other), &peer);
  EXPECT_EQ(peer.Receive(), "x");
  EXPECT_STREQ(SSL_get_version(peer.ssl()), "TLSv1.3");
  EXPECT_STREQ(SSL_get_cipher_name(peer.ssl()), "TLS_AES_128_GCM_SHA256");
  EXPECT_EQ(peer.tickets(), 0);
  EXPECT_EQ(SSL_SESSION_is_resumable(SSL_get0_session(peer.ssl())), 0);
}

TEST_F(TlsChannelTest, PlaintextEitherWay_IsNamed) {
  auto [one, other] = MakePair();
  Guest plain(MakePlainChannel(std::move(one)));
  Guest accepter(Accept(std::move(other)));
  std::string more = "GET / HTTP/1.1\r\n";
  const iovec piece = PieceOf(&more);
  ASSERT_THAT(plain->Send({&piece, 1}), IsOk());
  accepter.Go();
  EXPECT_THAT(accepter.status(),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("the peer speaks no TLS, and this task")));

  auto [third, fourth] = MakePair();
  Guest dialer(Dial(std::move(third), *own_));
  const Channel answering = MakePlainChannel(std::move(fourth));
  std::string answer(40, 'm');
  const iovec frame = PieceOf(&answer);
  ASSERT_THAT(answering->Send({&frame, 1}), IsOk());
  dialer.Go();
  EXPECT_THAT(dialer.status(),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("the peer speaks no TLS, and this task")));
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
  RawPeer peer(std::move(one));
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
  RawPeer peer(std::move(one));
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

TEST_F(TlsChannelTest, SmallPieces_ShareARecord) {
  auto [one, other] = MakePair();
  RawPeer peer(std::move(one));
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

TEST_F(TlsChannelTest, AKeyOfAnotherCertificate_IsRefused) {
  EXPECT_THAT(MakeTlsContext(own_->Read("ps-0.pem"), own_->Read("ps-1.key")),
              StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_THAT(MakeTlsContext("", ""),
              StatusIs(absl::StatusCode::kUnauthenticated));
}

}  // namespace
}  // namespace muster
