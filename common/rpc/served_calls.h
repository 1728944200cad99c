#ifndef COMMON_RPC_SERVED_CALLS_H_
#define COMMON_RPC_SERVED_CALLS_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/link.h"
#include "common/rpc/method.h"
#include "proto/parameter_service.pb.h"

namespace muster {

// The calls that somebody answers: rows of the call table with a handler each.
// What receives calls, such as gRPC, passes them on as bytes when it has
// checked who makes them.
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
    BytesHandler answer = [path = method.path, handler = std::move(handler)](
                              const std::string& bytes, absl::Time deadline,
                              ReplyCallback<std::string> done) {
      typename M::Request request;
      if (!request.ParseFromString(bytes)) {
        return done(Damaged(absl::InvalidArgumentError(
            absl::StrCat("a request to ", path, ", ", bytes.size(),
                         " bytes, is not a ", request.GetTypeName()))));
      }
      handler(request, deadline,
              SerializeReply<typename M::Reply>(std::move(done)));
    };
    calls_.insert_or_assign(
        method.path,
        Served{method, std::move(answer), &ReadSender<typename M::Request>});
  }

  // Errors: also InvalidArgument (kDamaged) for a request that is none,
  // Unimplemented for
  // a method without a handler.
  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    const auto call = calls_.find(method.path);
    if (call == calls_.end()) {
      return done(absl::UnimplementedError(
          absl::StrCat(method.path, " is not served here")));
    }
    call->second.answer(request, deadline, std::move(done));
  }

  // The sender that a request names; nothing if such requests name none, or it
  // is none.
  std::optional<Sender> SenderOf(const AnyMethod& method,
                                 const std::string& request) const {
    const auto call = calls_.find(method.path);
    if (call == calls_.end()) return std::nullopt;
    return call->second.sender_of(request);
  }

  // The methods that have a handler, by path.
  std::vector<AnyMethod> methods() const {
    std::vector<AnyMethod> methods;
    for (const auto& [path, call] : calls_) methods.push_back(call.method);
    return methods;
  }

 private:
  using BytesHandler = std::function<void(const std::string&, absl::Time,
                                          ReplyCallback<std::string>)>;
  struct Served {
    AnyMethod method;
    BytesHandler answer;
    std::optional<Sender> (*sender_of)(const std::string& request);
  };

  template <typename Request>
  static std::optional<Sender> ReadSender(const std::string& bytes) {
    Request request;
    if (!request.ParseFromString(bytes)) return std::nullopt;
    return SenderIn(request, 0);
  }
  template <typename Request>
  static auto SenderIn(const Request& request, int /*first*/)
      -> std::optional<std::decay_t<decltype(request.sender())>> {
    return request.sender();
  }
  template <typename Request>
  static std::optional<Sender> SenderIn(const Request& /*request*/,
                                        char /*second*/) {
    return std::nullopt;
  }

  // By the path of a row, which is never destroyed.
  std::map<absl::string_view, Served> calls_;
};

}  // namespace muster

#endif  // COMMON_RPC_SERVED_CALLS_H_
