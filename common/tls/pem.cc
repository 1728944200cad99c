#include "common/tls/pem.h"

#include "openssl/bio.h"
#include "openssl/err.h"
#include "openssl/pem.h"

namespace muster {
namespace {

// A chain is the leaf and a few authorities between it and the trusted one.
constexpr int kMostCertificates = 16;

using Bytes = std::unique_ptr<BIO, int (*)(BIO*)>;

Bytes BytesOf(absl::string_view text) {
  return Bytes(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
               &BIO_free);
}

void FreeStack(STACK_OF(X509) * stack) { sk_X509_pop_free(stack, &X509_free); }

// A key with a password would be asked for on the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

}  // namespace

CertificateStack ReadCertificates(absl::string_view pem) {
  CertificateStack stack(sk_X509_new_null(), &FreeStack);
  const Bytes bytes = BytesOf(pem);
  for (int i = 0; i < kMostCertificates; ++i) {
    X509* const x509 =
        PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr);
    if (x509 == nullptr) break;
    sk_X509_push(stack.get(), x509);
  }
  ERR_clear_error();  // of the end
  return stack;
}

PrivateKey ReadPrivateKey(absl::string_view pem) {
  const Bytes bytes = BytesOf(pem);
  PrivateKey key(
      PEM_read_bio_PrivateKey(bytes.get(), nullptr, &NoPassword, nullptr),
      &EVP_PKEY_free);
  ERR_clear_error();
  return key;
}

std::string PemOf(X509* certificate) {
  const Bytes bytes(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_X509(bytes.get(), certificate);
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bytes.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace muster
