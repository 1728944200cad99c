#ifndef WORKER_SESSION_CHIEF_MACHINE_H_
#define WORKER_SESSION_CHIEF_MACHINE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "proto/coordination_service.pb.h"
#include "proto/parameter_service.pb.h"
#include "worker/session/session_messages.h"

namespace muster {

// Is the committed epoch in `state` the one that the shards hold? `hellos` by
// ps task.
bool ShardsHoldEpoch(const JobState& state,
                     absl::Span<const HelloReply> hellos);

// Is it, and does the job go on? A shard that has a larger epoch is being
// loaded by a newer chief; one that has another incarnation has lost its
// memory.
bool EpochIsUsable(const JobState& state, absl::Span<const HelloReply> hellos);

// Do the shards hold the model of a job that goes on (JobState.may_go_on)?
bool CanResume(const JobState& state, absl::Span<const HelloReply> hellos);

// The largest epoch that the coordinator or any shard knows.
int64_t LargestSeenEpoch(const JobState& state,
                         absl::Span<const HelloReply> hellos);

// The incarnations in `hellos`, by ps task.
std::vector<uint64_t> IncarnationsOf(absl::Span<const HelloReply> hellos);

// The chief's part of starting or recovering a run: begin an epoch, load every
// shard, commit. It is asked to start only when the committed epoch is not
// usable; a usable one is attached to and needs no chief.
//
//   kIdle --Start--> kBeginning --OnBegun--> kLoading --OnLoaded-->
//   kCommitting --OnCommitted--> kIdle
//   kIdle --Resume--> kCommitting
//
// A failure leads back to kIdle; Restoring decides whether to try again.
// Not thread-safe; no clock, no waiting.
class ChiefMachine {
 public:
  enum class Phase { kIdle, kBeginning, kLoading, kCommitting };

  Phase phase() const { return phase_; }
  bool busy() const { return phase_ != Phase::kIdle; }

  // `last_epoch`: the last that this task was in. REQUIRES: !busy().
  SessionAction Start(const JobState& state,
                      absl::Span<const HelloReply> hellos, int64_t last_epoch);
  // Commits the epoch of a job that goes on, with what the shards hold.
  // REQUIRES: !busy(), CanResume.
  SessionAction Resume(const JobState& state,
                       absl::Span<const HelloReply> hellos);
  SessionAction OnBegun(const BeginEpochReply& reply);
  SessionAction OnLoaded(const LoadedModel& model);
  void OnCommitted() { phase_ = Phase::kIdle; }
  void OnFailed() { phase_ = Phase::kIdle; }

 private:
  Phase phase_ = Phase::kIdle;
  // The newest that was begun.
  int64_t model_epoch_ = 0;
  std::vector<uint64_t> ps_incarnations_;
};

}  // namespace muster

#endif  // WORKER_SESSION_CHIEF_MACHINE_H_
