#include "worker/hook/hook_registry.h"

#include <utility>

#include "common/base/status_macros.h"

namespace muster {

absl::StatusOr<std::vector<std::unique_ptr<Hook>>> MakeRegisteredHooks(
    const HookParts& parts) {
  std::vector<std::unique_ptr<Hook>> hooks;
  for (const std::string& name : HookRegistry::Names()) {
    ASSIGN_OR_RETURN(const MakeHook make, HookRegistry::Find(name));
    ASSIGN_OR_RETURN(std::unique_ptr<Hook> hook, make(parts));
    if (hook != nullptr) hooks.push_back(std::move(hook));
  }
  return hooks;
}

}  // namespace muster
