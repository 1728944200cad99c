#ifndef PS_SERVER_CALLER_NAMESPACE_OF_H_
#define PS_SERVER_CALLER_NAMESPACE_OF_H_

#include "absl/strings/string_view.h"

namespace muster {
namespace namespace_of_detail {

template <typename Request>
auto Of(const Request& request, int /*first*/)
    -> decltype(request.sender().namespace_(), absl::string_view()) {
  return request.sender().namespace_();
}
template <typename Request>
auto Of(const Request& request, char /*second*/)
    -> decltype(request.namespace_(), absl::string_view()) {
  return request.namespace_();
}
template <typename Request>
absl::string_view Of(const Request& /*request*/, ...) {
  return "";
}

}  // namespace namespace_of_detail

// The namespace that a request means: its sender's, else its own, else the
// default one. It lies in the request.
template <typename Request>
absl::string_view NamespaceOf(const Request& request) {
  return namespace_of_detail::Of(request, 0);
}

}  // namespace muster

#endif  // PS_SERVER_CALLER_NAMESPACE_OF_H_
