#ifndef TESTS_COMMON_TLS_RAW_TLS_PEER_H_
#define TESTS_COMMON_TLS_RAW_TLS_PEER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file_descriptor.h"
#include "openssl/ssl.h"
#include "tests/testing/certificates.h"

namespace muster {

// Another program with OpenSSL, which believes everybody.
class RawTlsPeer {
 public:
  explicit RawTlsPeer(FileDescriptor socket) : socket_(std::move(socket)) {
    BIO* const bio = BIO_new_socket(socket_.get(), BIO_NOCLOSE);
    SSL_set_bio(ssl(), bio, bio);
    SSL_set_connect_state(ssl());
    SSL_set_app_data(ssl(), this);
    SSL_set_msg_callback(ssl(), &RawTlsPeer::Note);
  }
  RawTlsPeer(const RawTlsPeer&) = delete;
  RawTlsPeer& operator=(const RawTlsPeer&) = delete;

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
    auto& peer = *static_cast<RawTlsPeer*>(SSL_get_app_data(ssl));
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

}  // namespace muster

#endif  // TESTS_COMMON_TLS_RAW_TLS_PEER_H_
