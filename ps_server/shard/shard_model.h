#ifndef PS_SERVER_SHARD_SHARD_MODEL_H_
#define PS_SERVER_SHARD_SHARD_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/codec/codec.h"
#include "common/rpc/device_parameters.h"
#include "common/rpc/parameter_link.h"
#include "common/tensor/buffer_pool.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/block/element_ranges.h"
#include "ps_server/block/parameter_memory.h"
#include "ps_server/block/shard_snapshot.h"
#include "ps_server/block/slice_checks.h"
#include "ps_server/block/tensor_table.h"
#include "ps_server/shard/device_resident_parameters.h"
#include "ps_server/shard/duplicate_marks.h"
#include "ps_server/shard/gradient_applier.h"
#include "ps_server/shard/part_recorder.h"
#include "ps_server/shard/push_context.h"
#include "ps_server/shard/replication_policy.h"
#include "ps_server/shard/row_tables.h"
#include "ps_server/shard/shard_counters.h"
#include "ps_server/shard/shard_definition.h"
#include "ps_server/shard/shard_epoch.h"
#include "ps_server/shard/shard_options.h"
#include "ps_server/shard/stream_slices.h"

namespace muster {

// One model on a ps task: its epoch, tensors, optimizer and replication, what
// was pushed, and its snapshot. A state machine, EMPTY until the first Define;
// ParameterShard says what holds of its requests, and lets only those in that
// are this process' and of a current incarnation. Not thread-safe.
class ShardModel : private PartApplier {
 public:
  // Both outlive this. `replies`: memory for answers.
  ShardModel(const ShardOptions& options, BufferPool* replies);

  ShardModel(const ShardModel&) = delete;
  ShardModel& operator=(const ShardModel&) = delete;

  // As ParameterShard's. `max_bytes`: for all that belongs to the model.
  absl::StatusOr<DefineReply> Define(const DefineRequest& request,
                                     int64_t max_bytes);
  absl::StatusOr<LoadReply> Load(const Frame<LoadPart>& request);
  absl::StatusOr<SealReply> Seal(const SealRequest& request);
  absl::StatusOr<Frame<PullReply>> Pull(const PullRequest& request,
                                        const ValueMemory& memory);
  absl::StatusOr<Frame<PushReply>> Push(const Frame<PushPart>& request,
                                        const PushContext& context);
  absl::StatusOr<Frame<PullRowsReply>> PullRows(
      const Frame<PullRowsRequest>& request, const ValueMemory& memory);
  absl::StatusOr<BeginSnapshotReply> BeginSnapshot(
      const BeginSnapshotRequest& request);
  absl::StatusOr<Frame<SnapshotPart>> ReadSnapshot(
      const ReadSnapshotRequest& request);
  absl::StatusOr<EndSnapshotReply> EndSnapshot(
      const EndSnapshotRequest& request);
  absl::StatusOr<std::shared_ptr<const ParameterMemory>> ParametersInPlace(
      int64_t model_epoch) const;
  absl::Status KeepOnDevice(const Sender& sender, const Fence& fence,
                            DeviceParameters* holder);
  absl::StatusOr<PushReply> UpdateOnDevice(const PushPart& request);

  // Rows make the model grow.
  bool has_tables() const { return !tables_.empty(); }
  // From now on, what belongs to the model may have `max_bytes`; what it has
  // stays.
  void LimitTo(int64_t max_bytes) { max_bytes_ = max_bytes; }

  // Counts a push that was refused before it came here.
  void CountRefusal(const absl::Status& refusal) {
    counters_.CountReply(refusal, PushReply());
  }
  // Forgets the sender's task: another incarnation of it has taken over.
  void Forget(const Sender& sender);

  ShardState State() const;
  // Records from now on what is done to it; a recording before is forgotten.
  void Record(const PartRecorder::Options& options);
  // Null if nothing was recorded since.
  PartRecorder* recorder() { return recorder_.get(); }
  // The end of it. Nothing: there is none.
  std::optional<ProfilePart> EndRecord();

  // Its tensors, as they were defined.
  void AddDefinitions(ShardState* state) const;
  // Parameters, slots and rows.
  int64_t held_bytes() const {
    return tensors_.parameter_bytes() + tensors_.slot_bytes() + tables_.bytes();
  }
  ShardPhase phase() const { return epoch_.phase(); }
  ShardCounters counters() const;
  // As ReplicationPolicy's; "" without a model.
  absl::string_view RateDifference() const {
    return definition_.policy == nullptr ? ""
                                         : definition_.policy->RateDifference();
  }
  // Whether a chief reads the values to save them.
  bool has_snapshot() const { return snapshot_.id() != 0; }
  // "" before the first Define.
  const std::string& optimizer_name() const {
    return definition_.optimizer_name;
  }

 private:
  std::string What(absl::string_view request, const Sender& sender) const;
  std::string WhatPush(const PushPart& header) const;

  // Frees the old tensors and tables and makes room for those of `request`.
  // Errors: ResourceExhausted; the model is EMPTY then.
  absl::Status ReplaceTensors(const DefineRequest& request,
                              const ShardDefinition& definition);
  StreamSlices::Model StreamsOfModel() const;
  absl::Status LoadSlices(absl::string_view what,
                          const Frame<LoadPart>& request);
  // The updates of the model so far.
  int64_t updates() const { return definition_.updates + version_; }
  // The bytes that rows, and beside them a snapshot's copies, may take.
  int64_t RowRoom() const {
    return definition_.max_copy_bytes -
           std::max<int64_t>(0, definition_.max_bytes - max_bytes_);
  }

  absl::StatusOr<Frame<PushReply>> PushUncounted(const Frame<PushPart>& request,
                                                 const PushContext& context);
  absl::StatusOr<PushReply> UpdateOnDeviceUncounted(const PushPart& request);
  // Checks everything of a part that is no duplicate.
  absl::StatusOr<PushedPart> CheckPart(absl::string_view what,
                                       const Frame<PushPart>& request,
                                       const PushContext& context) const;
  // The part as far as the header alone says.
  PushedPart MakePart(const PushPart& header) const;
  // Notes the part in the marks and the counters; returns its step's outcome.
  PartOutcome CountPart(const PushedPart& part, PartFate fate,
                        const StepCounts& counts);

  // Accepts a part that passed every check; returns the values that it
  // wants, written on the way if that can be.
  absl::Cord AcceptPart(PushedPart part, PartFate fate, bool wants_values,
                        const ValueMemory& memory);
  // The values of a part that was accepted before, if it wants them.
  absl::StatusOr<absl::Cord> ValuesOfDuplicate(absl::string_view what,
                                               const PushPart& header,
                                               const Codec* codec,
                                               const ValueMemory& memory);
  PushReply MakePushReply(const PartOutcome& outcome, bool duplicate) const;
  // The values of the slices as they are now.
  absl::Cord ValuesOf(const std::vector<CheckedSlice>& slices,
                      const Codec* codec, const ValueMemory& memory);
  // Memory for so many that `fill` writes; of *replies_ if `memory` is null.
  absl::Cord MakeValues(int64_t bytes, const ValueMemory& memory,
                        absl::FunctionRef<void(char* data)> fill);

  // As PartRecorder's.
  void Note(const char* what);

  // ---- PartApplier -------------------------------------------------------
  bool Apply(const PushedPart& part) override;
  void ApplyToBlocks(absl::Span<const CheckedSlice> slices, double rate_factor,
                     BlockGradient gradient) override;
  void ApplyRows(const CheckedRows& rows, double rate_factor) override;
  void CountUpdate() override;

  const ShardOptions& options_;
  BufferPool* const replies_;
  GradientApplier applier_;
  DuplicateMarks marks_;
  ShardCounters counters_;

  ShardEpoch epoch_;
  ShardDefinition definition_;
  int64_t version_ = 0;
  TensorTable tensors_;
  RowTables tables_;
  int64_t max_bytes_ = 0;
  std::vector<ElementRanges> loaded_;  // [tensor]; only in LOADING
  ShardSnapshot snapshot_;
  Sender snapshot_owner_;
  uint64_t next_snapshot_ = 1;
  DeviceResidentParameters held_;
  // Null while nobody records.
  std::unique_ptr<PartRecorder> recorder_;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_SHARD_MODEL_H_
