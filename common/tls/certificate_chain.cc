#include "common/tls/certificate_chain.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tls/certificate.h"
#include "common/tls/pem.h"
#include "openssl/err.h"
#include "openssl/x509.h"
#include "openssl/x509_vfy.h"
#include "openssl/x509v3.h"

namespace muster {
namespace {

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
  const CertificateStack certificates = ReadCertificates(chain);
  const CertificateStack trusted = ReadCertificates(authority);
  return Verify(certificates.get(), trusted.get(), side, now, leaf);
}

absl::Status CheckKeyPair(absl::string_view chain, absl::string_view key) {
  const CertificateStack certificates = ReadCertificates(chain);
  X509* const x509 = sk_X509_value(certificates.get(), 0);
  const PrivateKey pair = ReadPrivateKey(key);
  const bool fits = x509 != nullptr && pair != nullptr &&
                    X509_check_private_key(x509, pair.get()) == 1;
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
