#ifndef WORKER_BLOCKING_CALL_H_
#define WORKER_BLOCKING_CALL_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "common/rpc/parameter_link.h"

namespace muster {

// Makes one call of a link and waits for its answer; the link's deadline bounds
// the wait. Not for a link's own thread.
//
//   ASSIGN_OR_RETURN(const SealReply reply,
//                    BlockingCall<SealReply>([&](auto done) {
//                      link->Seal(request, deadline, std::move(done));
//                    }));
template <typename Reply, typename Call>
absl::StatusOr<Reply> BlockingCall(Call&& call) {
  struct Answer {
    absl::Notification ready;
    std::optional<absl::StatusOr<Reply>> reply;
  };
  // Shared: the callback still touches it after it has woken this thread.
  const auto answer = std::make_shared<Answer>();
  call(ReplyCallback<Reply>([answer](absl::StatusOr<Reply> reply) {
    answer->reply = std::move(reply);
    answer->ready.Notify();
  }));
  answer->ready.WaitForNotification();
  return *std::move(answer->reply);
}

}  // namespace muster

#endif  // WORKER_BLOCKING_CALL_H_
