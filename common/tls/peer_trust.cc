#include "common/tls/peer_trust.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/tls/certificate.h"

namespace muster {

PeerTrust::PeerTrust(Identity own, std::string authority,
                     std::function<absl::Time()> wall_time, Reporter reporter,
                     const Clock* clock)
    : own_(std::move(own)),
      wall_time_(std::move(wall_time)),
      lines_(std::move(reporter), clock),
      authority_(std::move(authority)) {}

void PeerTrust::SetAuthority(std::string authority) {
  absl::MutexLock lock(&mu_);
  authority_ = std::move(authority);
}

absl::Status PeerTrust::Check(const Shown& shown,
                              const std::optional<Identity>& wanted) const {
  const absl::Status status = CheckPeer(shown, wanted);
  if (!status.ok()) {
    lines_.Say(absl::StrCat(
        "TLS: refused a ", shown.side == TlsSide::kClient ? "client" : "server",
        ": ", EscapeForLog(status.message())));
  }
  return status;
}

absl::Status PeerTrust::CheckPeer(const Shown& shown,
                                  const std::optional<Identity>& wanted) const {
  ASSIGN_OR_RETURN(const Certificate leaf,
                   ReadCertificate(shown.leaf, "the peer"));
  const std::string its = absl::StrCat("its certificate ", NameOf(leaf), " ");
  std::string authority;
  {
    absl::MutexLock lock(&mu_);
    authority = authority_;
  }
  const absl::Status chain =
      CheckChain(absl::StrCat(shown.leaf, "\n", shown.chain), authority,
                 shown.side, wall_time_());
  if (!chain.ok()) {
    return absl::UnauthenticatedError(absl::StrCat(its, chain.message()));
  }
  const absl::StatusOr<Identity> found = IdentityOf(leaf);
  if (!found.ok()) {
    return absl::UnauthenticatedError(
        absl::StrCat(its, found.status().message()));
  }
  if (found->cluster != own_.cluster) {
    return absl::UnauthenticatedError(
        absl::StrCat(its, "is of ", NameOf(*found), "; this is cluster '",
                     own_.cluster, "'"));
  }
  if (wanted.has_value() &&
      (found->job != wanted->job || found->index != wanted->index)) {
    return absl::UnauthenticatedError(absl::StrCat(
        its, "is of ", NameOf(*found), "; wanted that of ", NameOf(*wanted)));
  }
  return absl::OkStatus();
}

}  // namespace muster
