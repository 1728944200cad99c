#include "ps_server/sync/replication_policy.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ps_server/sync/async_policy.h"

namespace muster {
namespace {

absl::Status NotThere(absl::string_view mode) {
  return absl::UnimplementedError(absl::StrCat(
      "replication { ", mode, " {} } is not in this version; use async {}"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReplicationPolicy>> CreateReplicationPolicy(
    const ReplicationSpec& spec) {
  switch (spec.mode_case()) {
    case ReplicationSpec::MODE_NOT_SET:
    case ReplicationSpec::kAsync:
      return std::make_unique<AsyncPolicy>(spec.async());
    case ReplicationSpec::kSync:
      return NotThere("sync");
    case ReplicationSpec::kBoundedStaleness:
      return NotThere("bounded_staleness");
  }
  return NotThere("an unknown mode");
}

}  // namespace muster
