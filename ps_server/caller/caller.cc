#include "ps_server/caller/caller.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

constexpr Role kProven[] = {Role::kChief,     Role::kWorker, Role::kPs,
                            Role::kEvaluator, Role::kViewer, Role::kAdmin};

const char* NameOf(Role role) {
  switch (role) {
    case Role::kUnproven:
      return "unproven";
    case Role::kChief:
      return "chief";
    case Role::kWorker:
      return "worker";
    case Role::kPs:
      return "ps";
    case Role::kEvaluator:
      return "evaluator";
    case Role::kViewer:
      return "viewer";
    case Role::kAdmin:
      return "admin";
  }
  return "unknown";
}

const char* NameOf(Transport transport) {
  return transport == Transport::kGrpc ? "gRPC" : "shared memory";
}

std::string NamesOf(const RoleSet& roles) {
  std::vector<std::string> names;
  for (const Role role : kProven) {
    if (roles.Contains(role)) names.push_back(NameOf(role));
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace

absl::Status CheckMayCall(const AnyMethod& method, const Caller& caller) {
  if (caller.role == Role::kUnproven || method.callers.Contains(caller.role)) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      method.path, " over ", NameOf(caller.transport), ": the caller",
      caller.task.has_value() ? absl::StrCat(", ", TaskName(*caller.task), ",")
                              : "",
      " has the role ", NameOf(caller.role),
      "; wanted one of: ", NamesOf(method.callers)));
}

}  // namespace muster
