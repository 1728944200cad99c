#ifndef COMMON_TLS_TLS_CHANNEL_H_
#define COMMON_TLS_TLS_CHANNEL_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/file_descriptor.h"
#include "common/rpc/byte_channel.h"
#include "common/tls/certificate_chain.h"
#include "common/tls/identity.h"
#include "common/tls/peer_trust.h"
#include "common/tls/socket_bio.h"
#include "openssl/ssl.h"
#include "openssl/x509_vfy.h"

namespace muster {

// Shared by the channels that were made with it.
using TlsContext = std::shared_ptr<SSL_CTX>;

// The certificate and the key to show, in PEM form, and the settings of every
// TlsChannel: TLS 1.3 with AES-128-GCM, both sides show a certificate, each
// connection has keys of its own. Errors: Unauthenticated if they do not fit.
absl::StatusOr<TlsContext> MakeTlsContext(absl::string_view chain,
                                          absl::string_view key);

// TLS 1.3 over a connected socket. The peer is checked when it shows its
// certificate, so that one who is refused is told by an alert; nothing is
// received before it has proved to have the key, too.
class TlsChannel : public ByteChannel {
 public:
  struct Options {
    // The peer's side: kServer dials.
    TlsSide peer = TlsSide::kClient;
    std::shared_ptr<const PeerTrust> trust;
    // The task that was dialled.
    std::optional<Identity> wanted;
    // Records sent before there is a new key for them. AES-GCM is as good as it
    // should be for 2^24.5 of them (RFC 8446, 5.5).
    uint64_t records_per_key = uint64_t{1} << 23;
  };

  // `socket` is connected; from here on it does not block. Errors:
  // ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<ByteChannel>> Create(
      FileDescriptor socket, const TlsContext& context, Options options);

  int fd() const override { return socket_.fd(); }
  bool is_duplex() const override { return false; }
  absl::StatusOr<bool> Handshake() override;
  absl::StatusOr<size_t> Receive(absl::Span<const iovec> pieces) override;
  absl::StatusOr<size_t> Send(absl::Span<const iovec> pieces) override;
  absl::StatusOr<bool> Flush() override;
  bool has_received() const override;
  bool wants_to_send() const override { return wants_to_send_; }
  std::string PeerCertificate() const override;

 private:
  friend absl::StatusOr<TlsContext> MakeTlsContext(absl::string_view chain,
                                                   absl::string_view key);
  using Ssl = std::unique_ptr<SSL, void (*)(SSL*)>;

  TlsChannel(FileDescriptor socket, Ssl ssl, Options options);

  // OpenSSL's question whether to go on with a peer: 0 for no.
  static int CheckPeer(X509_STORE_CTX* shown, void*);

  // Whether OpenSSL's call has done it; false if it goes on later.
  absl::StatusOr<bool> Check(int result);
  absl::Status FailureOf(int error) const;
  // Has the next record sent with a new key when it is time.
  void CountRecord();

  const Options options_;
  SocketBio socket_;
  // Uses socket_.
  const Ssl ssl_;
  bool is_done_ = false;
  bool wants_to_send_ = false;
  // What is left of the bytes from the socket is less than a record.
  bool wants_to_receive_ = false;
  uint64_t records_ = 0;
  std::string certificate_;
  // PeerTrust's.
  absl::Status refusal_;
  // The end of this.
  absl::Status failure_;
  // A record of small pieces.
  std::array<char, SSL3_RT_MAX_PLAIN_LENGTH> gathered_;
};

}  // namespace muster

#endif  // COMMON_TLS_TLS_CHANNEL_H_
