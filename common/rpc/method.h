#ifndef COMMON_RPC_METHOD_H_
#define COMMON_RPC_METHOD_H_

#include <cstdint>
#include <initializer_list>

#include "absl/strings/string_view.h"

namespace muster {

// The part of a caller in the job. A viewer looks at it, an admin steers it;
// the others are tasks.
enum class Role : uint8_t {
  // Nobody has to prove anything.
  kUnproven,
  // Has proved nothing where it had to.
  kStranger,
  kChief,
  kWorker,
  kPs,
  kEvaluator,
  kViewer,
  kAdmin,
};

// Roles, as bits.
class RoleSet {
 public:
  constexpr RoleSet(std::initializer_list<Role> roles) {
    for (const Role role : roles) bits_ |= BitOf(role);
  }
  constexpr bool Contains(Role role) const {
    return (bits_ & BitOf(role)) != 0;
  }
  constexpr bool operator==(const RoleSet& other) const {
    return bits_ == other.bits_;
  }

 private:
  static constexpr uint32_t BitOf(Role role) {
    return uint32_t{1} << static_cast<uint32_t>(role);
  }

  uint32_t bits_ = 0;
};

// An RPC as links and servers see it, who pass its messages on as bytes. A row
// of the call table (call_table.h), which is never destroyed.
struct AnyMethod {
  // As gRPC names it: "/muster.CoordinationService/Step".
  const char* path;
  // Who may call it (ps_server/caller/caller.h).
  RoleSet callers;
};

inline bool operator==(const AnyMethod& a, const AnyMethod& b) {
  return absl::string_view(a.path) == b.path;
}

// An RPC with its messages.
template <typename RequestType, typename ReplyType>
struct Method : AnyMethod {
  using Request = RequestType;
  using Reply = ReplyType;

  constexpr Method(const char* path, RoleSet callers)
      : AnyMethod{path, callers} {}
};

}  // namespace muster

#endif  // COMMON_RPC_METHOD_H_
