#ifndef PS_SERVER_SERVICE_OFFERED_TOKENS_H_
#define PS_SERVER_SERVICE_OFFERED_TOKENS_H_

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "ps_server/caller/caller.h"

namespace muster {

// The tokens of offered memory, each of the caller whom a checked connection
// gave it to: who shows it later is that one. Thread-safe.
class OfferedTokens {
 public:
  // The newest of a caller that are known; a worker uses one at a time.
  static constexpr size_t kMostOfCaller = 16;

  // A new one for `caller`.
  std::string Make(const Caller& caller);

  // Whose it is, over shared memory; nobody's if it was not made, or long ago.
  std::optional<Caller> Find(absl::string_view token) const;

 private:
  using Holder = std::pair<Role, std::optional<TaskKey>>;

  mutable absl::Mutex mu_;
  absl::flat_hash_map<std::string, Caller> callers_ ABSL_GUARDED_BY(mu_);
  // The oldest first.
  std::map<Holder, std::deque<std::string>> tokens_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_OFFERED_TOKENS_H_
