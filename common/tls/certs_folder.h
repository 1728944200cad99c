#ifndef COMMON_TLS_CERTS_FOLDER_H_
#define COMMON_TLS_CERTS_FOLDER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/tls/certificate.h"
#include "common/tls/identity.h"

namespace muster {

// The keys of one task, as `muster certs` writes them. The texts are PEM.
struct Certs {
  std::string authority;
  // The certificate, then what leads from it to the authority.
  std::string chain;
  std::string key;
  // The key's file, if everybody may read or replace it; else "".
  std::string exposed_key;
  Certificate certificate;
  Identity identity;
};

// Reads DIR/ca.pem and the pair DIR/worker-1.pem, DIR/worker-1.key of a job's
// task (index -1: viewer or admin), and checks that a peer which trusts ca.pem
// takes them at `now`. The folder may be swapped meanwhile, where it is a link.
// Errors, each with the file: those of ReadFile; Unauthenticated for what a
// peer would refuse.
absl::StatusOr<Certs> ReadCerts(absl::string_view dir, absl::string_view job,
                                int32_t index, absl::Time now);

// The index of the one task of `job` whose certificate is in the folder.
// Errors: InvalidArgument if there is none, or several.
absl::StatusOr<int32_t> OwnIndexIn(absl::string_view dir,
                                   absl::string_view job);

}  // namespace muster

#endif  // COMMON_TLS_CERTS_FOLDER_H_
