#ifndef WORKER_CLIENT_LINK_BLOCKING_CALL_H_
#define WORKER_CLIENT_LINK_BLOCKING_CALL_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/one_shot.h"
#include "common/rpc/link.h"

namespace muster {

// Makes one call of a link and waits for its answer; the link's deadline bounds
// the wait. Not for a link's own thread.
//
//   ASSIGN_OR_RETURN(const SealReply reply,
//                    BlockingCall<SealReply>(clock, [&](auto done) {
//                      link->Call(kSealCall, request, deadline,
//                      std::move(done));
//                    }));
template <typename Reply, typename Call>
absl::StatusOr<Reply> BlockingCall(const Clock& clock, Call&& call) {
  struct Answer {
    explicit Answer(const Clock* clock) : ready(clock) {}
    OneShot ready;
    std::optional<absl::StatusOr<Reply>> reply;
  };
  // Shared: the callback still touches it after it has woken this thread.
  const auto answer = std::make_shared<Answer>(&clock);
  call(ReplyCallback<Reply>([answer](absl::StatusOr<Reply> reply) {
    answer->reply = std::move(reply);
    answer->ready.Notify();
  }));
  answer->ready.Wait();
  return *std::move(answer->reply);
}

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_BLOCKING_CALL_H_
