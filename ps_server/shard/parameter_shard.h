#ifndef PS_SERVER_SHARD_PARAMETER_SHARD_H_
#define PS_SERVER_SHARD_PARAMETER_SHARD_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/thread_team.h"
#include "common/codec/codec.h"
#include "common/optimizer/update_rule.h"
#include "common/rpc/device_parameters.h"
#include "common/rpc/parameter_link.h"
#include "proto/cluster.pb.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/block/buffer_pool.h"
#include "ps_server/block/element_ranges.h"
#include "ps_server/block/parameter_memory.h"
#include "ps_server/block/shard_snapshot.h"
#include "ps_server/block/slice_checks.h"
#include "ps_server/block/tensor_table.h"
#include "ps_server/caller/listed_tasks.h"
#include "ps_server/shard/device_resident_parameters.h"
#include "ps_server/shard/duplicate_marks.h"
#include "ps_server/shard/gradient_applier.h"
#include "ps_server/shard/incarnations.h"
#include "ps_server/shard/push_context.h"
#include "ps_server/shard/replication_policy.h"
#include "ps_server/shard/stream_slices.h"

namespace muster {

struct ShardOptions {
  // The cluster as this ps knows it; empty for --standalone.
  ClusterDef cluster;
  int32_t ps_index = 0;
  // Random, not 0, new at every start of the process.
  uint64_t incarnation = 1;
  // Parameters and slots together; a Define beyond it is refused. What a model
  // leaves of it is for the copies of a snapshot, and in synchronous
  // replication half of that for gradients.
  int64_t max_bytes = int64_t{64} << 30;
  // Gradients of one round together; a push beyond it, or beyond what is left
  // for them, is refused.
  int64_t max_gradient_bytes = std::numeric_limits<int64_t>::max();
  // Parameters that are pulled in place lie where other processes can read
  // them.
  bool shares_memory = false;
  // Shares the work on large parts; null: the caller of the shard does it all.
  // Outlives the shard.
  ThreadTeam* apply_team = nullptr;
};

// Counts of what the shard has seen since the process started.
struct ShardCounters {
  int64_t applied_parts = 0;
  int64_t duplicate_parts = 0;
  int64_t fenced_parts = 0;
  // Parts that a check refused (malformed, or NaN).
  int64_t refused_parts = 0;
  // Updates of this shard's version.
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
};

// One ps task's parameters and what may happen to them: the state machine
// behind ParameterService. No thread, clock, file or RPC inside; a request is
// checked whole before anything changes, so that a refused one changed
// nothing; but a Define for which the machine has no memory leaves the shard
// EMPTY. parameter_service.proto says what each request means and
// README.md the states. Not thread-safe (see ShardServer).
//
// The values in an answer may lie in the shard: they are to be copied before
// the next request, unless memory was given for them.
//
// Errors of every request: FailedPrecondition with "fenced: " if the sender
// means a state or is an incarnation that is gone; InvalidArgument, NotFound,
// Unimplemented for what it says.
class ParameterShard : private PartApplier {
 public:
  explicit ParameterShard(ShardOptions options);

  absl::StatusOr<HelloReply> Hello(const HelloRequest& request);
  absl::StatusOr<DefineReply> Define(const DefineRequest& request);
  absl::StatusOr<LoadReply> Load(const Frame<LoadPart>& request);
  absl::StatusOr<SealReply> Seal(const SealRequest& request);
  // `memory`, unless null, is where the values of the answer go, which may then
  // be kept.
  absl::StatusOr<Frame<PullReply>> Pull(const PullRequest& request,
                                        const ValueMemory& memory = nullptr);
  absl::StatusOr<Frame<PushReply>> Push(const Frame<PushPart>& request,
                                        const PushContext& context = {});
  absl::StatusOr<BeginSnapshotReply> BeginSnapshot(
      const BeginSnapshotRequest& request);
  absl::StatusOr<Frame<SnapshotPart>> ReadSnapshot(
      const ReadSnapshotRequest& request);
  absl::StatusOr<EndSnapshotReply> EndSnapshot(
      const EndSnapshotRequest& request);

  // The memory in which the parameters of `model_epoch` lie. Errors:
  // FailedPrecondition ("fenced: " for another epoch) if they are not to be
  // read there.
  absl::StatusOr<std::shared_ptr<const ParameterMemory>> ParametersInPlace(
      int64_t model_epoch) const;

  // From now on, until the next Define, `holder` has the parameters and slots
  // and updates them (DeviceParameters); it outlives that. Again, and another
  // one: it takes over. Errors: FailedPrecondition if the replication is not
  // asynchronous, or there are state tensors; those of the holder, and then
  // nobody holds them.
  absl::Status KeepOnDevice(const Sender& sender, const Fence& fence,
                            DeviceParameters* holder);
  // An update of all of them (ParameterLink::UpdateOnDevice).
  absl::StatusOr<PushReply> UpdateOnDevice(const PushPart& request);

  ShardState State() const;
  ShardPhase phase() const { return phase_; }
  ShardCounters counters() const;
  // As Incarnations'.
  uint64_t CurrentIncarnation(const Sender& sender) const {
    return incarnations_.Current(sender);
  }
  // "" before the first Define.
  const std::string& optimizer_name() const { return optimizer_name_; }

 private:
  // The start of an error message: "push of ... to /job:ps/task:0".
  std::string What(absl::string_view request, const Sender& sender) const;

  absl::Status CheckSender(const Sender& sender, uint64_t ps_incarnation) const;
  absl::Status CheckFence(const Sender& sender, const Fence& fence) const;
  // CheckFence, and the phase is `phase`.
  absl::Status CheckPhase(const Sender& sender, const Fence& fence,
                          ShardPhase phase) const;

  // Frees what the shard holds of a model and makes room for that of `request`,
  // which was checked. Errors: ResourceExhausted; the shard is EMPTY then.
  absl::Status ReplaceTensors(const DefineRequest& request,
                              absl::Span<const SlotDef> slots);

  StreamSlices::Model StreamsOfModel() const;

  // Errors: Aborted if `snapshot` has ended.
  absl::Status CheckSnapshot(absl::string_view what, uint64_t snapshot) const;

  absl::StatusOr<Frame<PushReply>> PushUncounted(const Frame<PushPart>& request,
                                                 const PushContext& context);
  absl::StatusOr<PushReply> UpdateOnDeviceUncounted(const PushPart& request);
  void CountReply(const absl::Status& status, const PushReply& reply);
  std::string WhatPush(const PushPart& header) const;
  absl::Status CheckPushNumbers(absl::string_view what,
                                const PushPart& header) const;
  // Checks everything of a part that is no duplicate.
  absl::StatusOr<PushedPart> CheckPart(absl::string_view what,
                                       const Frame<PushPart>& request,
                                       const PushContext& context) const;
  // The part as far as the header alone says.
  PushedPart MakePart(const PushPart& header) const;
  // Notes the part in the marks and counters; returns its step's outcome.
  PartOutcome CountPart(const PushedPart& part, PartFate fate);

  // Carries out a part that passed every check; returns the values that it
  // wants, written on the way if that can be.
  absl::Cord TakePart(PushedPart part, PartFate fate, bool wants_values,
                      const ValueMemory& memory);
  // The values of a part that was taken before, if it wants them.
  absl::StatusOr<absl::Cord> ValuesOfDuplicate(absl::string_view what,
                                               const PushPart& header,
                                               const Codec* codec,
                                               const ValueMemory& memory);
  PushReply MakePushReply(const PartOutcome& outcome, bool duplicate) const;
  // The values of the slices as they are now.
  absl::Cord ValuesOf(const std::vector<CheckedSlice>& slices,
                      const Codec* codec, const ValueMemory& memory);
  // Memory for them that `fill` writes; of replies_ if `memory` is null.
  absl::Cord MakeValues(const std::vector<CheckedSlice>& slices,
                        const Codec* codec, const ValueMemory& memory,
                        absl::FunctionRef<void(char* data)> fill);

  // ---- PartApplier -------------------------------------------------------
  void Apply(const PushedPart& part) override;
  void ApplyToAll(BlockGradient gradient) override;
  void CountUpdate() override;

  const ShardOptions options_;
  GradientApplier applier_;
  BufferPool replies_;

  // The state of the process.
  Incarnations incarnations_;
  DuplicateMarks marks_;
  ShardCounters counters_;
  uint64_t next_snapshot_ = 1;

  // The state of the model epoch.
  ShardPhase phase_ = EMPTY;
  int64_t model_epoch_ = 0;
  uint64_t fingerprint_ = 0;
  bool allow_non_finite_ = false;
  bool pulled_in_place_ = false;
  int64_t version_ = 0;
  TensorTable tensors_;
  std::vector<ElementRanges> loaded_;  // [tensor]; only in LOADING
  std::string optimizer_name_;
  std::unique_ptr<UpdateRule> rule_;
  std::unique_ptr<ReplicationPolicy> policy_;
  ShardSnapshot snapshot_;
  Sender snapshot_owner_;
  int64_t max_copy_bytes_ = 0;
  DeviceResidentParameters held_;

  // Whether Apply has written the new values of the push under way.
  bool is_published_ = false;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_PARAMETER_SHARD_H_
