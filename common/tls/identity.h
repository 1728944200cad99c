#ifndef COMMON_TLS_IDENTITY_H_
#define COMMON_TLS_IDENTITY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tls/certificate.h"

namespace muster {

inline constexpr char kViewerIdentity[] = "viewer";
inline constexpr char kAdminIdentity[] = "admin";

// The holder of a certificate, by its alternative names: a task of a cluster,
// or, without an index, who looks at it (viewer) or steers it (admin).
struct Identity {
  std::string cluster;
  std::string job;
  int32_t index = -1;

  bool is_task() const { return index >= 0; }
};

// From the one URI spiffe://CLUSTER/job/JOB/task/INDEX or
// spiffe://CLUSTER/role/viewer; else, for authorities that make no such URIs,
// from the one DNS name JOB-INDEX.CLUSTER or viewer.CLUSTER. Errors:
// Unauthenticated: what is wanted, and what was found.
absl::StatusOr<Identity> IdentityOf(const Certificate& certificate);

// "/job:worker/task:1 of cluster 'muster'", "the viewer of cluster 'muster'".
std::string NameOf(const Identity& identity);

// The stem of the files of its keys: "worker-1", "viewer".
std::string StemOf(absl::string_view job, int32_t index);

}  // namespace muster

#endif  // COMMON_TLS_IDENTITY_H_
