#include "ps_server/service/offered_tokens.h"

#include "common/shared_memory/handshake.h"

namespace muster {

std::string OfferedTokens::Make(const Caller& caller) {
  std::string token = NewSecret();
  Caller holder = caller;
  holder.transport = Transport::kSharedMemory;
  absl::MutexLock lock(&mu_);
  callers_.emplace(token, holder);
  std::deque<std::string>& own = tokens_[{caller.role, caller.task}];
  own.push_back(token);
  if (own.size() > kMostOfCaller) {
    callers_.erase(own.front());
    own.pop_front();
  }
  return token;
}

std::optional<Caller> OfferedTokens::Find(absl::string_view token) const {
  absl::MutexLock lock(&mu_);
  const auto found = callers_.find(token);
  if (found == callers_.end()) return std::nullopt;
  return found->second;
}

}  // namespace muster
