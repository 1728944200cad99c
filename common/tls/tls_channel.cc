#include "common/tls/tls_channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tls/pem.h"
#include "openssl/err.h"

namespace muster {
namespace {

constexpr size_t kReadAhead = 64 << 10;

// Alerts that TLS 1.3 brings after the handshake of who dialled.
bool IsOfCertificate(int alert) {
  return (alert >= SSL_AD_BAD_CERTIFICATE &&
          alert <= SSL_AD_CERTIFICATE_UNKNOWN) ||
         alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_CERTIFICATE_REQUIRED;
}

// The pieces of a Send, record by record.
class RecordCutter {
 public:
  explicit RecordCutter(absl::Span<const iovec> pieces) : pieces_(pieces) {}

  // The next record: where it lies, or, of small pieces, a copy in `gathered`.
  // "" at the end.
  absl::string_view Next(absl::Span<char> gathered) {
    if (pieces_.empty()) return "";
    if (pieces_.size() == 1 || Rest().size() >= gathered.size()) {
      return Advance(gathered.size());
    }
    size_t size = 0;
    while (!pieces_.empty() && size < gathered.size()) {
      const absl::string_view bytes = Advance(gathered.size() - size);
      std::memcpy(gathered.data() + size, bytes.data(), bytes.size());
      size += bytes.size();
    }
    return {gathered.data(), size};
  }

 private:
  absl::string_view Rest() const {
    return absl::string_view(static_cast<const char*>(pieces_[0].iov_base),
                             pieces_[0].iov_len)
        .substr(offset_);
  }
  absl::string_view Advance(size_t most) {
    const absl::string_view bytes = Rest().substr(0, most);
    offset_ += bytes.size();
    if (offset_ == pieces_[0].iov_len) {
      pieces_.remove_prefix(1);
      offset_ = 0;
    }
    return bytes;
  }

  absl::Span<const iovec> pieces_;
  size_t offset_ = 0;
};

}  // namespace

absl::StatusOr<TlsContext> MakeTlsContext(absl::string_view chain,
                                          absl::string_view key) {
  TlsContext context(SSL_CTX_new(TLS_method()), &SSL_CTX_free);
  if (context == nullptr) return absl::ResourceExhaustedError("TLS: no memory");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context.get(), "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_default_read_buffer_len(context.get(), kReadAhead);
  SSL_CTX_set_verify(context.get(),
                     SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     nullptr);
  SSL_CTX_set_cert_verify_callback(context.get(), &TlsChannel::CheckPeer,
                                   nullptr);
  const CertificateStack certificates = ReadCertificates(chain);
  const std::unique_ptr<X509, void (*)(X509*)> leaf(
      sk_X509_shift(certificates.get()), &X509_free);
  const PrivateKey pair = ReadPrivateKey(key);
  const bool fits =
      leaf != nullptr && pair != nullptr &&
      SSL_CTX_use_cert_and_key(context.get(), leaf.get(), pair.get(),
                               certificates.get(), /*override=*/1) == 1;
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  ERR_clear_error();
  if (fits) return context;
  return absl::UnauthenticatedError(absl::StrCat(
      "OpenSSL refuses the certificate or its key: ",
      reason == nullptr ? "no PEM" : reason, "; `muster certs` makes others"));
}

absl::StatusOr<std::unique_ptr<ByteChannel>> TlsChannel::Create(
    FileDescriptor socket, const TlsContext& context, Options options) {
  Ssl ssl(SSL_new(context.get()), &SSL_free);
  if (ssl == nullptr) return absl::ResourceExhaustedError("TLS: no memory");
  return absl::WrapUnique<ByteChannel>(
      new TlsChannel(std::move(socket), std::move(ssl), std::move(options)));
}

TlsChannel::TlsChannel(FileDescriptor socket, Ssl ssl, Options options)
    : options_(std::move(options)),
      socket_(std::move(socket)),
      ssl_(std::move(ssl)) {
  BIO* const bio = socket_.NewBio();
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), this);
  if (options_.peer == TlsSide::kServer) {
    SSL_set_connect_state(ssl_.get());
  } else {
    SSL_set_accept_state(ssl_.get());
  }
}

int TlsChannel::CheckPeer(X509_STORE_CTX* shown, void*) {
  const auto* const ssl = static_cast<const SSL*>(
      X509_STORE_CTX_get_ex_data(shown, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto& channel = *static_cast<TlsChannel*>(SSL_get_app_data(ssl));
  std::string chain;
  const STACK_OF(X509)* const all = X509_STORE_CTX_get0_untrusted(shown);
  for (int i = 1; i < sk_X509_num(all); ++i) {
    chain += PemOf(sk_X509_value(all, i));
  }
  channel.certificate_ = PemOf(X509_STORE_CTX_get0_cert(shown));
  channel.refusal_ = channel.options_.trust->Check(
      {channel.certificate_, chain, channel.options_.peer},
      channel.options_.wanted);
  if (channel.refusal_.ok()) return 1;
  X509_STORE_CTX_set_error(shown, X509_V_ERR_CERT_REJECTED);
  return 0;
}

absl::StatusOr<bool> TlsChannel::Handshake() {
  RETURN_IF_ERROR(failure_);
  if (!is_done_) {
    ERR_clear_error();
    ASSIGN_OR_RETURN(is_done_, Check(SSL_do_handshake(ssl_.get())));
  }
  ASSIGN_OR_RETURN(const bool is_sent, Flush());
  wants_to_send_ = !is_sent;
  return is_done_ && is_sent;
}

absl::StatusOr<size_t> TlsChannel::Receive(absl::Span<const iovec> pieces) {
  RETURN_IF_ERROR(failure_);
  size_t received = 0;
  for (const iovec& piece : pieces) {
    for (size_t filled = 0, size = 0; filled < piece.iov_len; filled += size) {
      ERR_clear_error();
      const absl::StatusOr<bool> is_done = Check(
          SSL_read_ex(ssl_.get(), static_cast<char*>(piece.iov_base) + filled,
                      piece.iov_len - filled, &size));
      wants_to_receive_ = !is_done.ok() || !*is_done;
      if (!is_done.ok() && received == 0) return is_done.status();
      if (wants_to_receive_) return received;
      received += size;
    }
  }
  return received;
}

absl::StatusOr<size_t> TlsChannel::Send(absl::Span<const iovec> pieces) {
  RETURN_IF_ERROR(failure_);
  size_t sent = 0;
  for (RecordCutter cutter(pieces);;) {
    if (!socket_.has_room()) {
      ASSIGN_OR_RETURN(const bool is_sent, Flush());
      if (!is_sent) return sent;
    }
    // With room, OpenSSL takes a record as a whole or not at all: it is never
    // offered again.
    const absl::string_view record = cutter.Next(absl::MakeSpan(gathered_));
    if (record.empty()) return sent;
    size_t size = 0;
    ERR_clear_error();
    ASSIGN_OR_RETURN(
        const bool is_done,
        Check(SSL_write_ex(ssl_.get(), record.data(), record.size(), &size)));
    if (!is_done) return sent;
    sent += size;
    CountRecord();
  }
}

absl::StatusOr<bool> TlsChannel::Flush() {
  RETURN_IF_ERROR(failure_);
  if (socket_.Drain()) return true;
  if (socket_.status().ok()) return false;
  // Why the peer is gone may have come before.
  char byte = 0;
  ERR_clear_error();
  RETURN_IF_ERROR(Check(SSL_peek(ssl_.get(), &byte, sizeof(byte))).status());
  return failure_ = socket_.status();
}

bool TlsChannel::has_received() const {
  return !failure_.ok() ||
         (!wants_to_receive_ && SSL_has_pending(ssl_.get()) == 1);
}

std::string TlsChannel::PeerCertificate() const {
  return is_done_ ? certificate_ : "";
}

void TlsChannel::CountRecord() {
  if (++records_ < options_.records_per_key) return;
  // Each side changes what it sends with.
  if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1) {
    records_ = 0;
  }
}

absl::StatusOr<bool> TlsChannel::Check(int result) {
  wants_to_send_ = false;
  if (result > 0) return true;
  const int error = SSL_get_error(ssl_.get(), result);
  wants_to_send_ = error == SSL_ERROR_WANT_WRITE;
  if (wants_to_send_ || error == SSL_ERROR_WANT_READ) return false;
  return failure_ = FailureOf(error);
}

absl::Status TlsChannel::FailureOf(int error) const {
  if (!refusal_.ok()) return refusal_;
  if (error != SSL_ERROR_SSL) {
    if (!socket_.status().ok()) return socket_.status();
    return absl::UnavailableError(
        absl::StrCat("the peer closed the connection",
                     is_done_ ? "" : " during the TLS handshake"));
  }
  const unsigned long code = ERR_peek_error();
  const int reason = ERR_GET_REASON(code);
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST) {
    return absl::UnauthenticatedError(
        "the peer speaks no TLS, and this task does: one has --certs_dir and "
        "the other has not");
  }
  const int alert = reason - SSL_AD_REASON_OFFSET;
  if (IsOfCertificate(alert)) {
    return absl::UnauthenticatedError(absl::StrCat(
        "the peer refused this task's certificate (TLS alert ", alert, ", ",
        SSL_alert_desc_string_long(alert), "); its log says why"));
  }
  const char* const text = ERR_reason_error_string(code);
  return absl::Status(is_done_ ? absl::StatusCode::kUnavailable
                               : absl::StatusCode::kUnauthenticated,
                      absl::StrCat(is_done_ ? "the connection is broken: "
                                            : "the TLS handshake failed: ",
                                   text == nullptr ? "unknown error" : text));
}

}  // namespace muster
