#ifndef PS_SERVER_SYNC_REPLICATION_POLICY_H_
#define PS_SERVER_SYNC_REPLICATION_POLICY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "common/codec/codec.h"
#include "proto/parameter_service.pb.h"
#include "proto/training.pb.h"
#include "ps_server/slice_checks.h"

namespace muster {

// A part of a worker's step that passed every check and is no duplicate.
struct PushedPart {
  Sender sender;
  int64_t step = 0;
  std::vector<CheckedSlice> slices;
  // Their values, encoded by `codec` (null: float32); shares the received
  // memory.
  absl::Cord data;
  const Codec* codec = nullptr;
  // Of its step, in updates.
  int64_t staleness = 0;
  // Of the learning rate with which it is applied.
  double rate_factor = 1;
};

// Changes the shard's values by one part.
class PartApplier {
 public:
  virtual ~PartApplier() = default;

  // REQUIRES: `part` was checked against the shard's present tensors.
  virtual void Apply(const PushedPart& part) = 0;
};

// When, and in what company, a pushed part changes the shard. One small class
// for each mode of ReplicationSpec. Not thread-safe.
class ReplicationPolicy {
 public:
  virtual ~ReplicationPolicy() = default;

  // As in ReplicationSpec: "async".
  virtual absl::string_view name() const = 0;

  // Applies `part` now, or keeps it and applies it in a later call.
  virtual void OnPart(PushedPart part, PartApplier& applier) = 0;
};

// The policy that `spec` asks for; async if it names none.
// Errors: Unimplemented, naming the mode.
absl::StatusOr<std::unique_ptr<ReplicationPolicy>> CreateReplicationPolicy(
    const ReplicationSpec& spec);

}  // namespace muster

#endif  // PS_SERVER_SYNC_REPLICATION_POLICY_H_
