#ifndef COMMON_TLS_CERTIFICATE_CHAIN_H_
#define COMMON_TLS_CERTIFICATE_CHAIN_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// The side of a connection that shows a certificate.
enum class TlsSide { kClient, kServer };

// Whether the first certificate of `chain` may be shown at `now` to those who
// trust the certificates of `authority`; further ones of `chain` may lead
// there. All in PEM form. Errors: Unauthenticated: what is wrong, as a clause
// whose subject is the certificate ("ended on 2026-01-01T00:00:00Z").
absl::Status CheckChain(absl::string_view chain, absl::string_view authority,
                        TlsSide side, absl::Time now);

// Whether `key` is that of the first certificate of `chain`. Errors:
// Unauthenticated, with "the key" as its subject.
absl::Status CheckKeyPair(absl::string_view chain, absl::string_view key);

}  // namespace muster

#endif  // COMMON_TLS_CERTIFICATE_CHAIN_H_
