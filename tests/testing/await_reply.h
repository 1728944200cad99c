#ifndef TESTS_TESTING_AWAIT_REPLY_H_
#define TESTS_TESTING_AWAIT_REPLY_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "common/rpc/parameter_link.h"
#include "tests/testing/copied_frame.h"

namespace muster {

// Makes an asynchronous call and waits for its answer:
//   auto reply = AwaitReply<SealReply>([&](ReplyCallback<SealReply> done) {
//     link.Call(kSealCall, request, deadline, std::move(done));
//   });
template <typename Reply>
absl::StatusOr<Reply> AwaitReply(
    const std::function<void(ReplyCallback<Reply>)>& call) {
  // Shared with the callback, which notifies after this function may wake.
  struct Answer {
    absl::StatusOr<Reply> reply;
    absl::Notification given;
  };
  const auto answer = std::make_shared<Answer>();
  call([answer](absl::StatusOr<Reply> reply) {
    // Values are the shard's own until this returns.
    answer->reply = Copied(std::move(reply));
    answer->given.Notify();
  });
  answer->given.WaitForNotification();
  return std::move(answer->reply);
}

// The same for a row of the call table.
template <typename M>
absl::StatusOr<typename M::Reply> AwaitCall(Link& link, const M& method,
                                            const typename M::Request& request,
                                            absl::Time deadline) {
  return AwaitReply<typename M::Reply>(
      [&](ReplyCallback<typename M::Reply> done) {
        link.Call(method, request, deadline, std::move(done));
      });
}

}  // namespace muster

#endif  // TESTS_TESTING_AWAIT_REPLY_H_
