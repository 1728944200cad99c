#ifndef PS_SERVER_CALLER_CALLER_H_
#define PS_SERVER_CALLER_CALLER_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "common/rpc/method.h"
#include "ps_server/caller/task_name.h"

namespace muster {

// The way a call came. Who calls within the process (--standalone) is the ps
// itself, and is not checked.
enum class Transport : uint8_t { kGrpc, kSharedMemory };

// Who makes a call, as far as its connection proves it: not what a request says
// of its sender. Made where calls come in.
struct Caller {
  Role role = Role::kUnproven;
  // Nothing for who is no task, or has not proved which.
  std::optional<TaskKey> task;
  Transport transport = Transport::kGrpc;
};

// Once at the entrance of each call: whether the caller may make it. Who has
// proved nothing may make every call for now.
// Errors: PermissionDenied, which names the call, the caller and who may.
absl::Status CheckMayCall(const AnyMethod& method, const Caller& caller);

}  // namespace muster

#endif  // PS_SERVER_CALLER_CALLER_H_
