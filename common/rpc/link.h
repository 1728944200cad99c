#ifndef COMMON_RPC_LINK_H_
#define COMMON_RPC_LINK_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/method.h"

namespace muster {

template <typename Reply>
using ReplyCallback = std::function<void(absl::StatusOr<Reply>)>;

// The way to the services of a ps task, wherever it is: behind gRPC, in this
// process, or simulated.
//
//   link->Call(kFinishCall, request, deadline,
//              [](absl::StatusOr<FinishReply> reply) { ... });
//
// Thread-safe. Every call returns at once; `done` is called exactly once,
// possibly before the call returns, on any thread, with no lock held. It must
// not block. After `deadline` (of the monotonic clock) `done` gets
// DeadlineExceeded; the request may have been carried out all the same.
//
// Errors of every call: Unavailable (peer gone, retry), DeadlineExceeded,
// FailedPrecondition, a fence (error_reason.h), if the ps moved on: register
// and pull anew; InvalidArgument, Unimplemented; Internal (kDamaged) for a
// reply that is none.
class Link {
 public:
  virtual ~Link() = default;

  // The call as bytes: the serialized request, and reply. `method` is a row of
  // the call table.
  virtual void CallBytes(const AnyMethod& method, std::string request,
                         absl::Time deadline,
                         ReplyCallback<std::string> done) = 0;

  // As CallBytes, up to kDamageTries times: until the request and its answer
  // have come through whole. A refusal may be of a request that was changed.
  template <typename M>
  void Call(const M& method, const typename M::Request& request,
            absl::Time deadline, ReplyCallback<typename M::Reply> done) {
    Try(kDamageTries, method, request.SerializeAsString(), deadline,
        std::move(done));
  }

  // A callback that gives the reply that it gets as bytes to `done`.
  template <typename M>
  static ReplyCallback<std::string> ParseReply(
      const M& method, ReplyCallback<typename M::Reply> done) {
    return [path = method.path,
            done = std::move(done)](const absl::StatusOr<std::string>& bytes) {
      if (!bytes.ok()) return done(bytes.status());
      typename M::Reply reply;
      if (!reply.ParseFromString(*bytes)) {
        return done(Damaged(absl::InternalError(
            absl::StrCat("the peer's answer to ", path, ", ", bytes->size(),
                         " bytes, is not a ", reply.GetTypeName()))));
      }
      done(std::move(reply));
    };
  }

  // The opposite.
  template <typename Reply>
  static ReplyCallback<Reply> SerializeReply(ReplyCallback<std::string> done) {
    return [done = std::move(done)](const absl::StatusOr<Reply>& reply) {
      if (!reply.ok()) return done(reply.status());
      done(reply->SerializeAsString());
    };
  }

 private:
  template <typename M>
  void Try(int tries, const M& method, std::string request, absl::Time deadline,
           ReplyCallback<typename M::Reply> done) {
    const auto on_reply = [this, tries, method, request, deadline,
                           done = std::move(done)](
                              absl::StatusOr<typename M::Reply> reply) {
      const absl::Status& status = reply.status();
      if (tries > 1 && (IsDamaged(status) || absl::IsInvalidArgument(status))) {
        return Try(tries - 1, method, request, deadline, done);
      }
      done(std::move(reply));
    };
    CallBytes(method, std::move(request), deadline,
              ParseReply(method, on_reply));
  }
};

}  // namespace muster

#endif  // COMMON_RPC_LINK_H_
