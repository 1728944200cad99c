// musterctl namespace drop: see its help.
#include "worker/ctl/namespace_calls.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

absl::Status End(const VerbCall& call, VerbResult* result) {
  return EndNamespaceOf(call, /*drop=*/true, result);
}

std::vector<Verb::Flag> Flags() {
  std::vector<Verb::Flag> flags = NamespaceCalls::Flags();
  flags.push_back({"force", "Also while workers train: they end with code 1.",
                   /*is_switch=*/true});
  return flags;
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "namespace drop", {"NAME",
                       "frees a namespace's parameters, and forgets it.\n  "
                       "Refused while workers train there.",
                       Flags(), 1, 1, &End});

}  // namespace
}  // namespace muster
