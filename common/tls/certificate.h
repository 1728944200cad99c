#ifndef COMMON_TLS_CERTIFICATE_H_
#define COMMON_TLS_CERTIFICATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// The parts of an X.509 certificate that decisions and lines are made of.
struct Certificate {
  // "CN=worker-1", safe to print.
  std::string subject;
  // The first 16 hexadecimal digits of its SHA-256.
  std::string fingerprint;
  absl::Time not_before;
  absl::Time not_after;
  // Alternative names, as they came.
  std::vector<std::string> uris;
  std::vector<std::string> dns_names;
};

// The first certificate in `pem`. Errors: Unauthenticated, beginning with
// `where`, if there is none.
absl::StatusOr<Certificate> ReadCertificate(absl::string_view pem,
                                            absl::string_view where);

// "CN=worker-1 (sha256 0123456789abcdef)".
std::string NameOf(const Certificate& certificate);

}  // namespace muster

#endif  // COMMON_TLS_CERTIFICATE_H_
