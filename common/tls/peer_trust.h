#ifndef COMMON_TLS_PEER_TRUST_H_
#define COMMON_TLS_PEER_TRUST_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/tls/certificate_chain.h"
#include "common/tls/identity.h"
#include "common/tls/refusal_lines.h"

namespace muster {

// Whom a task takes for a peer: who shows a certificate of the task's
// authority and cluster, and is whom it dialled. Says a line for each refusal.
// Thread-safe.
class PeerTrust {
 public:
  // The certificate that a peer showed, in PEM form, and the further ones that
  // came with it.
  struct Shown {
    absl::string_view leaf;
    absl::string_view chain;
    TlsSide side = TlsSide::kClient;
  };

  // `wall_time`: now, as certificates have it. `clock` outlives this.
  PeerTrust(Identity own, std::string authority,
            std::function<absl::Time()> wall_time, Reporter reporter,
            const Clock* clock);

  // From the next peer on.
  void SetAuthority(std::string authority);

  // Whether to go on with a peer that has the key of what it showed. `wanted`:
  // the task that was dialled; whose address it is does not count. Errors:
  // Unauthenticated, naming the certificate and the reason.
  absl::Status Check(const Shown& shown,
                     const std::optional<Identity>& wanted) const;

 private:
  absl::Status CheckPeer(const Shown& shown,
                         const std::optional<Identity>& wanted) const;

  // Constant after construction.
  const Identity own_;
  const std::function<absl::Time()> wall_time_;

  // Own synchronisation.
  mutable RefusalLines lines_;

  mutable absl::Mutex mu_;
  std::string authority_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // COMMON_TLS_PEER_TRUST_H_
