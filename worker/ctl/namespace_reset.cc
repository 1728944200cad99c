// musterctl namespace reset: see its help.
#include "worker/ctl/namespace_calls.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

absl::Status End(const VerbCall& call, VerbResult* result) {
  return EndNamespaceOf(call, /*drop=*/false, result);
}

std::vector<Verb::Flag> Flags() {
  std::vector<Verb::Flag> flags = NamespaceCalls::Flags();
  flags.push_back({"force", "Also while workers train: they end with code 1.",
                   /*is_switch=*/true});
  return flags;
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "namespace reset", {"NAME",
                        "frees a namespace's parameters; its next training "
                        "begins anew.\n  Refused while workers train there.",
                        Flags(), 1, 1, &End});

}  // namespace
}  // namespace muster
