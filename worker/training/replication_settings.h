// The `replication` of a training: checked, and fitted to its cluster.
#ifndef WORKER_TRAINING_REPLICATION_SETTINGS_H_
#define WORKER_TRAINING_REPLICATION_SETTINGS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "common/cluster/cluster_spec.h"
#include "proto/training.pb.h"

namespace muster {

// Checks what can be checked without a cluster. Errors: InvalidArgument naming
// the field, what it must be and what was found.
absl::Status ValidateReplication(const ReplicationSpec& replication);

// Checks that all_reduce is asked for in a cluster whose workers hold the
// parameters, and in no other. Errors: InvalidArgument saying what each is.
absl::Status CheckReplicationSuits(const ClusterSpec& cluster,
                                   const ReplicationSpec& replication);

// Fills in what the spec leaves to the cluster (0 replicas) and checks the
// whole against it: `replicas` is the number of its tasks that train (1 in
// standalone), 0 where it takes any worker; there 0 replicas stay, for as many
// as come. All tasks then have the same numbers, in the training's
// fingerprint and on the shards. All-reduce becomes what workers and shards do
// then: sync of all, which waits for the lost. REQUIRES: ValidateReplication is
// OK. Errors: as above.
absl::Status FitReplication(int replicas, ReplicationSpec* replication);

// The mode's numbers, by the names of their fields; for async none that are as
// they are by default.
std::map<std::string, int64_t> ReplicationNumbers(
    const ReplicationSpec& replication);

// Steps of which one worker computes or pushes the gradients at a time, from 1.
int PipelineDepth(const ReplicationSpec& replication);

// Whether steps read the parameters where the ps tasks keep them.
bool PullsInPlace(const ReplicationSpec& replication);

inline constexpr char kAllReduceName[] = "all_reduce";

// "async", "sync", "bounded_staleness" or, before FitReplication,
// kAllReduceName.
std::string ReplicationName(const ReplicationSpec& replication);

// For one line: "sync, each step the mean of the first 2 of 3 replicas".
std::string DescribeReplication(const ReplicationSpec& replication);

}  // namespace muster

#endif  // WORKER_TRAINING_REPLICATION_SETTINGS_H_
