#include "common/tls/certificate_chain.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tls/certificate.h"
#include "openssl/bio.h"
#include "openssl/err.h"
#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/x509.h"
#include "openssl/x509_vfy.h"
#include "openssl/x509v3.h"

namespace muster {
namespace {

// A chain is the leaf and a few authorities between it and the trusted one.
constexpr int kMostCertificates = 16;

void FreeStack(STACK_OF(X509) * stack) { sk_X509_pop_free(stack, &X509_free); }
using Stack = std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)>;
using Bytes = std::unique_ptr<BIO, int (*)(BIO*)>;

Bytes BytesOf(absl::string_view text) {
  return Bytes(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
               &BIO_free);
}

Stack ReadStack(absl::string_view pem) {
  Stack stack(sk_X509_new_null(), &FreeStack);
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

absl::Status Refusal(int error, const Certificate& leaf) {
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return absl::UnauthenticatedError(
          absl::StrCat("ended on ",
                       absl::FormatTime(absl::RFC3339_sec, leaf.not_after,
                                        absl::UTCTimeZone()),
                       ", or an authority of it did; `muster certs renew`"));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return absl::UnauthenticatedError(
          absl::StrCat("begins only on ",
                       absl::FormatTime(absl::RFC3339_sec, leaf.not_before,
                                        absl::UTCTimeZone()),
                       ", or an authority of it does; are the clocks right?"));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return absl::UnauthenticatedError(
          "is of another authority than the one in this task's ca.pem");
    default:
      return absl::UnauthenticatedError(
          absl::StrCat("is refused: ", X509_verify_cert_error_string(error)));
  }
}

absl::Status Verify(STACK_OF(X509) * chain, STACK_OF(X509) * trusted,
                    TlsSide side, absl::Time now, const Certificate& leaf) {
  const std::unique_ptr<X509_STORE, void (*)(X509_STORE*)> store(
      X509_STORE_new(), &X509_STORE_free);
  const std::unique_ptr<X509_STORE_CTX, void (*)(X509_STORE_CTX*)> context(
      X509_STORE_CTX_new(), &X509_STORE_CTX_free);
  X509_STORE_CTX_init(context.get(), store.get(), sk_X509_value(chain, 0),
                      chain);
  X509_STORE_CTX_set0_trusted_stack(context.get(), trusted);
  X509_STORE_CTX_set_purpose(context.get(), side == TlsSide::kServer
                                                ? X509_PURPOSE_SSL_SERVER
                                                : X509_PURPOSE_SSL_CLIENT);
  X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(context.get()),
                             absl::ToTimeT(now));
  const bool verified = X509_verify_cert(context.get()) == 1;
  const int error = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  return verified ? absl::OkStatus() : Refusal(error, leaf);
}

}  // namespace

absl::Status CheckChain(absl::string_view chain, absl::string_view authority,
                        TlsSide side, absl::Time now) {
  ASSIGN_OR_RETURN(const Certificate leaf,
                   ReadCertificate(chain, "the certificate"));
  const Stack certificates = ReadStack(chain);
  const Stack trusted = ReadStack(authority);
  return Verify(certificates.get(), trusted.get(), side, now, leaf);
}

absl::Status CheckKeyPair(absl::string_view chain, absl::string_view key) {
  const Bytes chain_bytes = BytesOf(chain);
  const Bytes key_bytes = BytesOf(key);
  const std::unique_ptr<X509, void (*)(X509*)> x509(
      PEM_read_bio_X509(chain_bytes.get(), nullptr, nullptr, nullptr),
      &X509_free);
  // A key with a password would be asked for on the terminal.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> pair(
      PEM_read_bio_PrivateKey(key_bytes.get(), nullptr, no_password, nullptr),
      &EVP_PKEY_free);
  const bool fits = x509 != nullptr && pair != nullptr &&
                    X509_check_private_key(x509.get(), pair.get()) == 1;
  ERR_clear_error();
  if (pair == nullptr) {
    return absl::UnauthenticatedError(
        "the key is none in PEM form without a password; is it half written?");
  }
  if (fits) return absl::OkStatus();
  return absl::UnauthenticatedError(
      "the key is that of another certificate; is the pair half written?");
}

}  // namespace muster
