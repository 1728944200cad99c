#ifndef TESTS_COMMON_TLS_TLS_CHANNEL_FIXTURE_H_
#define TESTS_COMMON_TLS_TLS_CHANNEL_FIXTURE_H_

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/base/status_macros.h"
#include "common/rpc/byte_channel.h"
#include "common/tls/identity.h"
#include "common/tls/peer_trust.h"
#include "common/tls/tls_channel.h"
#include "gtest/gtest.h"
#include "openssl/ssl.h"
#include "tests/common/tls/raw_tls_peer.h"
#include "tests/testing/certificates.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {

using Channel = std::unique_ptr<ByteChannel>;

// Each turn of a handshake over a socket pair does what it can.
inline constexpr int kTurns = 10;

inline std::pair<FileDescriptor, FileDescriptor> MakePair() {
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

inline iovec PieceOf(std::string* bytes) {
  return {bytes->data(), bytes->size()};
}

// Passes on bytes that are there, at most `most` of them.
inline size_t Forward(const FileDescriptor& from, const FileDescriptor& to,
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

inline void Meet(Guest* one, Guest* other) {
  for (int i = 0; i < kTurns; ++i) {
    one->Go();
    other->Go();
  }
}

// Channels of worker 1 to ps 0.
class TlsChannelFixture : public testing::Test {
 protected:
  static std::unique_ptr<Certificates> Make() {
    auto made = Certificates::Make();
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
  Guest AcceptRaw(FileDescriptor socket, RawTlsPeer* peer) {
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

}  // namespace muster

#endif  // TESTS_COMMON_TLS_TLS_CHANNEL_FIXTURE_H_
