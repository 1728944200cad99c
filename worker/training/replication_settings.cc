#include "worker/training/replication_settings.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr int32_t kMaxPipelineDepth = 2;

absl::Status CheckNotNegative(absl::string_view field, int32_t value) {
  if (value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("replication.", field, " must be 0 or more, found ", value));
}

absl::Status CheckPull(const AsyncReplication& async) {
  if (PullMode_IsValid(async.pull())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("replication.async.pull must be CONSISTENT or IN_PLACE, "
                   "found ",
                   static_cast<int>(async.pull())));
}

absl::Status CheckPipeline(const AsyncReplication& async) {
  const int32_t depth = async.pipeline_depth();
  if (depth >= 0 && depth <= kMaxPipelineDepth) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "replication.async.pipeline_depth must be 1 or ", kMaxPipelineDepth,
      ", found ", depth,
      ": a worker begins to push a step only when the one before it is done; a "
      "deeper pipeline would make gradients older, and no step faster"));
}

// The first number may not be more than the second.
absl::Status CheckAtMost(absl::string_view field, int32_t value,
                         absl::string_view limit_field, int32_t limit,
                         absl::string_view why) {
  if (value <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "replication.sync.", field, " must be at most replication.sync.",
      limit_field, ", which is ", limit, ", found ", value, ": ", why));
}

// Numbers that are 0 are not given (yet).
absl::Status CheckOrder(const SyncReplication& sync) {
  if (sync.total_replicas() > 0) {
    RETURN_IF_ERROR(CheckAtMost(
        "replicas_to_aggregate", sync.replicas_to_aggregate(), "total_replicas",
        sync.total_replicas(), "no step would have so many gradients"));
    RETURN_IF_ERROR(CheckAtMost("min_replicas", sync.min_replicas(),
                                "total_replicas", sync.total_replicas(),
                                "no step could ever be taken"));
  }
  if (sync.replicas_to_aggregate() == 0) return absl::OkStatus();
  return CheckAtMost("min_replicas", sync.min_replicas(),
                     "replicas_to_aggregate", sync.replicas_to_aggregate(),
                     "a step waits for no more gradients than that");
}

// Of workers that come and go.
absl::Status FitSyncOfAny(SyncReplication* sync) {
  if (sync->total_replicas() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "replication.sync.total_replicas is ", sync->total_replicas(),
        ", but the cluster takes any worker: leave it out; min_replicas says "
        "how many an update waits for, replicas_to_aggregate how many it has "
        "at most"));
  }
  if (sync->min_replicas() == 0) sync->set_min_replicas(1);
  return CheckOrder(*sync);
}

absl::Status FitSync(int replicas, SyncReplication* sync) {
  if (replicas == 0) return FitSyncOfAny(sync);
  if (sync->total_replicas() == 0) sync->set_total_replicas(replicas);
  if (sync->total_replicas() != replicas) {
    return absl::InvalidArgumentError(
        absl::StrCat("replication.sync.total_replicas is ",
                     sync->total_replicas(), ", but the cluster has ", replicas,
                     replicas == 1 ? " task that trains" : " tasks that train",
                     "; give the same number, or 0 for that of the cluster"));
  }
  if (sync->replicas_to_aggregate() == 0) {
    sync->set_replicas_to_aggregate(replicas);
  }
  if (sync->min_replicas() == 0) sync->set_min_replicas(1);
  return CheckOrder(*sync);
}

std::string DescribeReplicas(const SyncReplication& sync) {
  if (sync.total_replicas() > 0) {
    return absl::StrCat("the first ", sync.replicas_to_aggregate(), " of ",
                        sync.total_replicas(), " replicas");
  }
  const std::string which =
      sync.replicas_to_aggregate() > 0
          ? absl::StrCat("the first ", sync.replicas_to_aggregate(), " of")
          : "all";
  return absl::StrCat(which, " replicas that are there, at least ",
                      sync.min_replicas());
}

std::map<std::string, int64_t> AsyncNumbers(
    const ReplicationSpec& replication) {
  std::map<std::string, int64_t> numbers;
  const int depth = PipelineDepth(replication);
  if (depth > 1) numbers["pipeline_depth"] = depth;
  if (PullsInPlace(replication)) numbers["pull_in_place"] = 1;
  return numbers;
}

}  // namespace

absl::Status ValidateReplication(const ReplicationSpec& replication) {
  if (replication.has_bounded_staleness()) {
    return CheckNotNegative("bounded_staleness.bound",
                            replication.bounded_staleness().bound());
  }
  if (replication.has_async()) {
    RETURN_IF_ERROR(CheckPull(replication.async()));
    return CheckPipeline(replication.async());
  }
  if (!replication.has_sync()) return absl::OkStatus();
  const SyncReplication& sync = replication.sync();
  RETURN_IF_ERROR(CheckNotNegative("sync.replicas_to_aggregate",
                                   sync.replicas_to_aggregate()));
  RETURN_IF_ERROR(
      CheckNotNegative("sync.total_replicas", sync.total_replicas()));
  RETURN_IF_ERROR(CheckNotNegative("sync.min_replicas", sync.min_replicas()));
  return CheckOrder(sync);
}

absl::Status CheckReplicationSuits(const ClusterSpec& cluster,
                                   const ReplicationSpec& replication) {
  if (cluster.is_all_reduce() == replication.has_all_reduce()) {
    return absl::OkStatus();
  }
  if (cluster.is_all_reduce()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "replication is ", ReplicationName(replication),
        ", which wants ps tasks, but the cluster has none: give it some "
        "(--ps_hosts, or job ps in the file), or let the workers hold the "
        "parameters with --set=replication=all_reduce"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "replication is all_reduce, in which workers hold the parameters, ",
      cluster.empty() ? std::string("but --standalone has no other worker")
                      : absl::StrCat("but the cluster has ps tasks (",
                                     cluster.Summary(), ")"),
      ": give a cluster of workers only, or another mode, as "
      "--set=replication=sync"));
}

absl::Status FitReplication(int replicas, ReplicationSpec* replication) {
  if (replication->has_all_reduce()) {
    replication->mutable_sync()->set_min_replicas(replicas);
  }
  if (!replication->has_sync()) return absl::OkStatus();
  return FitSync(replicas, replication->mutable_sync());
}

std::map<std::string, int64_t> ReplicationNumbers(
    const ReplicationSpec& replication) {
  if (replication.has_bounded_staleness()) {
    return {{"bound", replication.bounded_staleness().bound()}};
  }
  if (!replication.has_sync()) return AsyncNumbers(replication);
  const SyncReplication& sync = replication.sync();
  return {{"replicas_to_aggregate", sync.replicas_to_aggregate()},
          {"total_replicas", sync.total_replicas()},
          {"min_replicas", sync.min_replicas()}};
}

std::string ReplicationName(const ReplicationSpec& replication) {
  switch (replication.mode_case()) {
    case ReplicationSpec::kSync:
      return "sync";
    case ReplicationSpec::kBoundedStaleness:
      return "bounded_staleness";
    case ReplicationSpec::kAllReduce:
      return kAllReduceName;
    default:
      return "async";
  }
}

std::string DescribeReplication(const ReplicationSpec& replication) {
  const std::string name = ReplicationName(replication);
  if (replication.has_sync()) {
    return absl::StrCat(name, ", each step the mean of ",
                        DescribeReplicas(replication.sync()));
  }
  if (replication.has_bounded_staleness()) {
    return absl::StrCat(name, ", no worker more than ",
                        replication.bounded_staleness().bound(),
                        " steps ahead of the slowest");
  }
  std::string text = name;
  if (PipelineDepth(replication) > 1) {
    absl::StrAppend(&text, ", each gradient computed while the one before it ",
                    "is pushed (pipeline_depth: ", PipelineDepth(replication),
                    ")");
  }
  if (PullsInPlace(replication)) {
    absl::StrAppend(&text, ", parameters read where the ps changes them ",
                    "(pull: IN_PLACE)");
  }
  return text;
}

bool PullsInPlace(const ReplicationSpec& replication) {
  return replication.async().pull() == IN_PLACE;
}

int PipelineDepth(const ReplicationSpec& replication) {
  return std::max(replication.async().pipeline_depth(), 1);
}

}  // namespace muster
