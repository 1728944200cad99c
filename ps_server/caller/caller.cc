#include "ps_server/caller/caller.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/rpc/call_table.h"

namespace muster {
namespace {

struct RoleName {
  Role role;
  const char* name;
};
constexpr RoleName kRoles[] = {
    {Role::kStranger, "stranger"},   {Role::kChief, "chief"},
    {Role::kWorker, "worker"},       {Role::kPs, "ps"},
    {Role::kEvaluator, "evaluator"}, {Role::kViewer, "viewer"},
    {Role::kAdmin, "admin"},
};

std::string NamesOf(const RoleSet& roles) {
  std::vector<absl::string_view> names;
  for (const auto& [role, name] : kRoles) {
    if (roles.Contains(role)) names.push_back(name);
  }
  return absl::StrJoin(names, ", ");
}

absl::string_view NameOf(Transport transport) {
  switch (transport) {
    case Transport::kGrpc:
      return "gRPC";
    case Transport::kSharedMemory:
      return "shared memory";
    case Transport::kTcp:
      return "TCP";
  }
  return "";
}

// "/muster.ParameterService/Load over gRPC: the caller, /job:worker/task:3,".
std::string Beginning(const AnyMethod& method, const Caller& caller) {
  return absl::StrCat(
      method.path, " over ", NameOf(caller.transport), ": the caller",
      caller.task.has_value() ? absl::StrCat(", ", TaskName(*caller.task), ",")
                              : "");
}

}  // namespace

bool IsSteering(const AnyMethod& method) {
  return method.callers == kByAdmin || method.callers == kByViewers;
}

absl::Status CheckMayCall(const AnyMethod& method, const Caller& caller) {
  if (caller.role == Role::kUnproven && !caller.is_local &&
      IsSteering(method)) {
    return absl::PermissionDeniedError(absl::StrCat(
        Beginning(method, caller),
        " is on another machine and proves nothing; "
        "without keys a job is steered from the ps task's own machine: call "
        "from there, or give all tasks --certs_dir and call as admin"));
  }
  if (caller.role == Role::kUnproven || method.callers.Contains(caller.role) ||
      (caller.ps.has_value() && method.callers.Contains(Role::kPs))) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      Beginning(method, caller), " has the role ", NamesOf({caller.role}),
      "; wanted one of: ", NamesOf(method.callers)));
}

absl::Status CheckMayProfile(const ProfileRequest& request,
                             const Caller& caller) {
  if (request.action() == ProfileRequest::READ_CLOCK) return absl::OkStatus();
  return CheckMayCall({kProfileCall.path, kByViewers}, caller);
}

absl::Status CheckSender(const AnyMethod& method, const Sender& sender,
                         const Caller& caller) {
  const TaskKey named = KeyOf(sender);
  if (caller.role == Role::kUnproven || caller.task == named ||
      caller.ps == named) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat(Beginning(method, caller), " sends as ", TaskName(named),
                   "; wanted the task of its certificate"));
}

}  // namespace muster
