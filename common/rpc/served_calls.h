#ifndef COMMON_RPC_SERVED_CALLS_H_
#define COMMON_RPC_SERVED_CALLS_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/link.h"
#include "common/rpc/method.h"

namespace muster {

// The calls that somebody answers: rows of the call table with a handler each.
// What receives calls, such as gRPC, passes them on as bytes.
//
//   ServedCalls calls;
//   calls.Handle(kFinishCall, [&](const FinishRequest& request,
//                                 absl::Time deadline,
//                                 ReplyCallback<FinishReply> done) { ... });
//
// Thread-safe once all handlers are there.
class ServedCalls : public Link {
 public:
  template <typename M>
  using Handler = std::function<void(const typename M::Request&, absl::Time,
                                     ReplyCallback<typename M::Reply>)>;

  // Instead of an earlier handler, if there is one. It behaves as
  // Link::Call, whose `done` it gets.
  template <typename M>
  void Handle(const M& method, Handler<M> handler) {
    handlers_[method.path] = [path = method.path, handler = std::move(handler)](
                                 const std::string& bytes, absl::Time deadline,
                                 ReplyCallback<std::string> done) {
      typename M::Request request;
      if (!request.ParseFromString(bytes)) {
        return done(absl::InvalidArgumentError(
            absl::StrCat("a request to ", path, ", ", bytes.size(),
                         " bytes, is not a ", request.GetTypeName())));
      }
      handler(request, deadline,
              SerializeReply<typename M::Reply>(std::move(done)));
    };
  }

  // Errors: also InvalidArgument for a request that is none, Unimplemented for
  // a method without a handler.
  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    const auto handler = handlers_.find(method.path);
    if (handler == handlers_.end()) {
      return done(absl::UnimplementedError(
          absl::StrCat(method.path, " is not served here")));
    }
    handler->second(request, deadline, std::move(done));
  }

  // The methods that have a handler, by path.
  std::vector<AnyMethod> methods() const {
    std::vector<AnyMethod> methods;
    for (const auto& [path, handler] : handlers_) {
      methods.push_back({path.data()});
    }
    return methods;
  }

 private:
  // By the path of a row, which is never destroyed.
  std::map<absl::string_view, std::function<void(const std::string&, absl::Time,
                                                 ReplyCallback<std::string>)>>
      handlers_;
};

}  // namespace muster

#endif  // COMMON_RPC_SERVED_CALLS_H_
