#ifndef COMMON_TLS_PEM_H_
#define COMMON_TLS_PEM_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "openssl/evp.h"
#include "openssl/x509.h"

namespace muster {

using CertificateStack =
    std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)>;
using PrivateKey = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;

// The certificates in `pem`, up to the first that cannot be read; 16 at most.
CertificateStack ReadCertificates(absl::string_view pem);

// Null if there is none without a password.
PrivateKey ReadPrivateKey(absl::string_view pem);

std::string PemOf(X509* certificate);

}  // namespace muster

#endif  // COMMON_TLS_PEM_H_
