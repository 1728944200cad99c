#ifndef PS_SERVER_CALLER_CALLER_H_
#define PS_SERVER_CALLER_CALLER_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/rpc/method.h"
#include "ps_server/caller/task_name.h"

namespace muster {

// The way a call came. Who calls within the process (--standalone) is the ps
// itself, and is not checked.
enum class Transport : uint8_t { kGrpc, kSharedMemory, kTcp };

// Who makes a call, as far as its connection proves it: not what a request says
// of its sender. Made where calls come in.
struct Caller {
  Role role = Role::kUnproven;
  // Nothing for who is no task, or has not proved which.
  std::optional<TaskKey> task = std::nullopt;
  Transport transport = Transport::kGrpc;
  // It is on this machine, or nobody has looked: only what operators steer with
  // asks for it.
  bool is_local = true;
  // In all-reduce, the ps task in the process of this task: it is both.
  std::optional<TaskKey> ps = std::nullopt;
  // The end of its certificate, on the clock of the ps.
  absl::Time valid_until = absl::InfiniteFuture();
};

// Whether the call is an operator's, who changes what tasks do, or has them
// record it.
bool IsSteering(const AnyMethod& method);

// Whether the caller may make the call. Who has proved nothing, where nothing
// is asked for (--certs_dir), may make every call, but those of an operator
// only on this machine.
// Errors: PermissionDenied, which names the call, the caller and who may.
absl::Status CheckMayCall(const AnyMethod& method, const Caller& caller);

// The same of a Profile call with this request: who may make it may read the
// clock, but have the ps record only if he may begin a profile.
absl::Status CheckMayProfile(const ProfileRequest& request,
                             const Caller& caller);

// Whether the sender that a request names is the caller.
// Errors: PermissionDenied, which names both.
absl::Status CheckSender(const AnyMethod& method, const Sender& sender,
                         const Caller& caller);

}  // namespace muster

#endif  // PS_SERVER_CALLER_CALLER_H_
