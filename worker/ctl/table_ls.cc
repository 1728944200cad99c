// musterctl table ls: the tables that a cluster's ps tasks hold.
#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "worker/ctl/namespace_calls.h"
#include "worker/ctl/table_totals.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

absl::Status List(const VerbCall& call, VerbResult* result) {
  ASSIGN_OR_RETURN(
      NamespaceCalls calls,
      NamespaceCalls::Create(call, NamespaceCalls::Purpose::kLook));
  const auto shards = calls.List();
  if (!shards.ok()) return SayIfAway(shards.status(), result);
  result->out = DescribeTables(*shards);
  return absl::OkStatus();
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "table ls", {"",
                 "lists the sparse tables of running ps tasks.\n"
                 "  With rows, bytes a row, rows that were made and evicted "
                 "since the epoch "
                 "began.",
                 NamespaceCalls::Flags(), 0, 0, &List});

}  // namespace
}  // namespace muster
