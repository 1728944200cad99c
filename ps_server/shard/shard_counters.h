#ifndef PS_SERVER_SHARD_SHARD_COUNTERS_H_
#define PS_SERVER_SHARD_SHARD_COUNTERS_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "proto/parameter_service.pb.h"

namespace muster {

// Counts of what a model has seen since the process started.
struct ShardCounters {
  int64_t applied_parts = 0;
  int64_t duplicate_parts = 0;
  int64_t fenced_parts = 0;
  // Parts that a check refused (malformed, or NaN).
  int64_t refused_parts = 0;
  // Updates of the model's version.
  int64_t steps = 0;
  // Parts that came after their step's update, and were dropped.
  int64_t late_parts = 0;
  // Steps whose worker went on or was replaced before all parts came.
  int64_t unfinished_steps = 0;
  // Snapshots whose copies found no room.
  int64_t given_up_snapshots = 0;
  // Staleness in updates, once for each step.
  int64_t staleness_sum = 0;
  int64_t staleness_count = 0;
  int64_t staleness_max = 0;

  // Counts the answer to a push; `reply` is read only if there is one.
  void CountReply(const absl::Status& status, const PushReply& reply) {
    if (!status.ok()) {
      const bool is_fenced =
          status.code() == absl::StatusCode::kFailedPrecondition;
      ++(is_fenced ? fenced_parts : refused_parts);
    } else if (reply.duplicate()) {
      ++duplicate_parts;
    } else if (!reply.late()) {
      ++applied_parts;
    }
  }
  // Adds those of another model.
  void Add(const ShardCounters& other) {
    applied_parts += other.applied_parts;
    duplicate_parts += other.duplicate_parts;
    fenced_parts += other.fenced_parts;
    refused_parts += other.refused_parts;
    steps += other.steps;
    late_parts += other.late_parts;
    unfinished_steps += other.unfinished_steps;
    given_up_snapshots += other.given_up_snapshots;
    staleness_sum += other.staleness_sum;
    staleness_count += other.staleness_count;
    staleness_max = std::max(staleness_max, other.staleness_max);
  }
  // Counts the staleness of a step.
  void CountStaleness(int64_t staleness) {
    staleness_sum += staleness;
    ++staleness_count;
    staleness_max = std::max(staleness_max, staleness);
  }
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_SHARD_COUNTERS_H_
