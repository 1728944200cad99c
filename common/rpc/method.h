#ifndef COMMON_RPC_METHOD_H_
#define COMMON_RPC_METHOD_H_

#include "absl/strings/string_view.h"

namespace muster {

// An RPC as links and servers see it, who pass its messages on as bytes. A row
// of the call table (call_table.h), which is never destroyed.
struct AnyMethod {
  // As gRPC names it: "/muster.CoordinationService/Step".
  const char* path;
};

inline bool operator==(const AnyMethod& a, const AnyMethod& b) {
  return absl::string_view(a.path) == b.path;
}

// An RPC with its messages.
template <typename RequestType, typename ReplyType>
struct Method : AnyMethod {
  using Request = RequestType;
  using Reply = ReplyType;

  explicit constexpr Method(const char* path) : AnyMethod{path} {}
};

}  // namespace muster

#endif  // COMMON_RPC_METHOD_H_
