#include "ps_server/service/offered_tokens.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/shared_memory/handshake.h"

namespace muster {
namespace {

absl::string_view NameOf(Transport transport) {
  return transport == Transport::kTcp ? "TCP connections" : "shared memory";
}

}  // namespace

absl::StatusOr<std::string> OfferedTokens::Make(const Caller& caller,
                                                absl::Time now) {
  std::string token = NewSecret();
  absl::MutexLock lock(&mu_);
  ForgetUnshown(now);
  if (offers_.size() >= kMost) {
    if (unshown_.empty()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "this ps has offered its ", NameOf(transport_), " ", kMost,
          " times, to callers that use the offers; this one talks over gRPC"));
    }
    ForgetOldest();
  }
  Offer offer{caller, now, /*sockets=*/0,
              unshown_.insert(unshown_.end(), token)};
  offer.caller.transport = transport_;
  offers_.emplace(token, std::move(offer));
  return token;
}

std::optional<Caller> OfferedTokens::Show(absl::string_view token,
                                          absl::Time now) {
  absl::MutexLock lock(&mu_);
  ForgetUnshown(now);
  const auto found = offers_.find(token);
  if (found == offers_.end()) return std::nullopt;
  Offer& offer = found->second;
  if (offer.sockets++ == 0) unshown_.erase(offer.place);
  return offer.caller;
}

void OfferedTokens::Close(absl::string_view token) {
  absl::MutexLock lock(&mu_);
  const auto found = offers_.find(token);
  if (found == offers_.end()) return;
  if (--found->second.sockets == 0) offers_.erase(found);
}

std::optional<Caller> OfferedTokens::Redeem(absl::string_view token,
                                            absl::Time now) {
  absl::MutexLock lock(&mu_);
  ForgetUnshown(now);
  const auto found = offers_.find(token);
  if (found == offers_.end() || found->second.sockets > 0) return std::nullopt;
  Caller caller = std::move(found->second.caller);
  unshown_.erase(found->second.place);
  offers_.erase(found);
  return caller;
}

void OfferedTokens::ForgetUnshown(absl::Time now) {
  while (!unshown_.empty() &&
         now >= offers_.at(unshown_.front()).made + kUnshown) {
    ForgetOldest();
  }
}

void OfferedTokens::ForgetOldest() {
  offers_.erase(unshown_.front());
  unshown_.pop_front();
}

}  // namespace muster
