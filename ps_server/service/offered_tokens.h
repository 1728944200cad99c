#ifndef PS_SERVER_SERVICE_OFFERED_TOKENS_H_
#define PS_SERVER_SERVICE_OFFERED_TOKENS_H_

#include <cstddef>
#include <list>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ps_server/caller/caller.h"

namespace muster {

// The tokens of offers of one transport, each of the caller whom a checked
// connection gave it to: the socket that shows it later is that caller's. A
// token lives until the last such socket has closed (Show), or is for one
// (Redeem), and lives for kUnshown if none comes. No caller can end another's,
// whether or not they can be told apart.
// Thread-safe; no clock.
class OfferedTokens {
 public:
  // Beyond these, the oldest that no socket has shown is forgotten.
  static constexpr size_t kMost = 4096;
  static constexpr absl::Duration kUnshown = absl::Seconds(30);

  // `transport`: kSharedMemory or kTcp.
  explicit OfferedTokens(Transport transport) : transport_(transport) {}

  // A new one for `caller`. Errors: ResourceExhausted if sockets have shown
  // kMost.
  absl::StatusOr<std::string> Make(const Caller& caller, absl::Time now);

  // Of a socket that shows it: whose it is, over the transport; nobody's if it
  // was not made, or has ended. Otherwise Close has to follow.
  std::optional<Caller> Show(absl::string_view token, absl::Time now);
  // That socket has closed.
  void Close(absl::string_view token);

  // As Show, for an offer to one socket: the token has ended when this returns,
  // and no Close follows. One that was shown before is nobody's.
  std::optional<Caller> Redeem(absl::string_view token, absl::Time now);

 private:
  struct Offer {
    Caller caller;
    absl::Time made;
    int sockets = 0;
    // In unshown_, while it is there.
    std::list<std::string>::iterator place;
  };
  using Offers = absl::flat_hash_map<std::string, Offer>;

  void ForgetOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetUnshown(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Transport transport_;

  absl::Mutex mu_;
  Offers offers_ ABSL_GUARDED_BY(mu_);
  // Those that no socket has shown, the oldest first.
  std::list<std::string> unshown_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_OFFERED_TOKENS_H_
