#include "ps_server/caller/caller.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

struct RoleName {
  Role role;
  const char* name;
};
// Those that can be proved.
constexpr RoleName kRoles[] = {
    {Role::kChief, "chief"},   {Role::kWorker, "worker"},
    {Role::kPs, "ps"},         {Role::kEvaluator, "evaluator"},
    {Role::kViewer, "viewer"}, {Role::kAdmin, "admin"},
};

std::string NamesOf(const RoleSet& roles) {
  std::vector<absl::string_view> names;
  for (const auto& [role, name] : kRoles) {
    if (roles.Contains(role)) names.push_back(name);
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace

absl::Status CheckMayCall(const AnyMethod& method, const Caller& caller) {
  if (caller.role == Role::kUnproven || method.callers.Contains(caller.role)) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      method.path, " over ",
      caller.transport == Transport::kGrpc ? "gRPC" : "shared memory",
      ": the caller",
      caller.task.has_value() ? absl::StrCat(", ", TaskName(*caller.task), ",")
                              : "",
      " has the role ", NamesOf({caller.role}),
      "; wanted one of: ", NamesOf(method.callers)));
}

}  // namespace muster
