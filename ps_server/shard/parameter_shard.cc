#include "ps_server/shard/parameter_shard.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/codec/codec.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "ps_server/block/value_cord.h"
#include "ps_server/caller/cluster_check.h"

namespace muster {
namespace {

// A newer worker may know more codecs than this ps.
absl::StatusOr<const Codec*> CodecOf(absl::string_view what,
                                     const std::string& name) {
  const auto codec = FindCodec(name);
  if (codec.ok()) return codec;
  return absl::UnimplementedError(
      absl::StrCat(what, ": codec '", EscapeForLog(name, 80),
                   "' is not one that this ps has: ",
                   absl::StrJoin(CodecRegistry::Names(), ", ")));
}

// Of the replication, where each push is one update of its blocks.
constexpr absl::string_view kHoldableMode = "async";

absl::Status Fenced(absl::string_view what, absl::string_view why) {
  return FencedError(absl::StrCat(what, ": ", why));
}

}  // namespace

ParameterShard::ParameterShard(ShardOptions options)
    : options_(std::move(options)),
      applier_(options_.apply_team),
      marks_(ListedTasks(options_.cluster)) {}

std::string ParameterShard::What(absl::string_view request,
                                 const Sender& sender) const {
  return absl::StrCat(request, " from ", TaskName(sender),
                      " to /job:ps/task:", options_.ps_index);
}

absl::Status ParameterShard::CheckSender(const Sender& sender,
                                         uint64_t ps_incarnation) const {
  if (ps_incarnation != options_.incarnation) {
    return Fenced(What("request", sender),
                  "it means another start of this ps; say Hello and pull anew");
  }
  return marks_.CheckCurrent(sender);
}

absl::Status ParameterShard::CheckFence(const Sender& sender,
                                        const Fence& fence) const {
  RETURN_IF_ERROR(CheckSender(sender, fence.ps_incarnation()));
  if (fence.model_epoch() == model_epoch_ && phase_ != EMPTY) {
    return absl::OkStatus();
  }
  return Fenced(What("request", sender),
                absl::StrCat("it means model epoch ", fence.model_epoch(),
                             ", the shard is ", ShardPhase_Name(phase_),
                             " at epoch ", model_epoch_));
}

absl::Status ParameterShard::CheckPhase(const Sender& sender,
                                        const Fence& fence,
                                        ShardPhase phase) const {
  RETURN_IF_ERROR(CheckFence(sender, fence));
  if (phase_ == phase) return absl::OkStatus();
  return Fenced(What("request", sender),
                absl::StrCat("the shard is ", ShardPhase_Name(phase_),
                             ", the request needs ", ShardPhase_Name(phase)));
}

absl::StatusOr<HelloReply> ParameterShard::Hello(const HelloRequest& request) {
  RETURN_IF_ERROR(CheckHello(request, options_.cluster, options_.ps_index));
  ASSIGN_OR_RETURN(const uint64_t takeover,
                   marks_.Admit(request.sender(), request.takeover()));
  // Nobody else knows that there is a snapshot, and it costs memory.
  if (snapshot_.id() != 0 && !marks_.CheckCurrent(snapshot_owner_).ok()) {
    snapshot_.Clear();
  }
  HelloReply reply;
  reply.set_takeover(takeover);
  reply.set_protocol_version(kProtocolVersion);
  reply.set_ps_incarnation(options_.incarnation);
  reply.set_muster_version(std::string(kMusterVersion));
  *reply.mutable_state() = State();
  return reply;
}

absl::StatusOr<Frame<PullReply>> ParameterShard::Pull(
    const PullRequest& request, const ValueMemory& memory) {
  RETURN_IF_ERROR(CheckPhase(request.sender(), request.fence(), READY));
  const std::string what = What("pull", request.sender());
  ASSIGN_OR_RETURN(
      const std::vector<CheckedSlice> slices,
      CheckSlices(what, request.slices(), tensors_, SliceUnit::kElements));
  ASSIGN_OR_RETURN(const Codec* const codec, CodecOf(what, request.codec()));
  RETURN_IF_ERROR(policy_->OnToken(what, request.token(), tensors_, *this));
  if (!slices.empty()) RETURN_IF_ERROR(Annotate(held_.WriteBack(), what));
  Frame<PullReply> reply;
  reply.header.set_version(version_);
  *reply.header.mutable_slices() = request.slices();
  reply.data = ValuesOf(slices, codec, memory);
  return reply;
}

absl::StatusOr<Frame<PushReply>> ParameterShard::Push(
    const Frame<PushPart>& request, const PushContext& context) {
  absl::StatusOr<Frame<PushReply>> reply = PushUncounted(request, context);
  CountReply(reply.status(), reply.ok() ? reply->header : PushReply());
  return reply;
}

void ParameterShard::CountReply(const absl::Status& status,
                                const PushReply& reply) {
  if (!status.ok()) {
    ++(status.code() == absl::StatusCode::kFailedPrecondition
           ? counters_.fenced_parts
           : counters_.refused_parts);
  } else if (reply.duplicate()) {
    ++counters_.duplicate_parts;
  } else if (!reply.late()) {
    ++counters_.applied_parts;
  }
}

std::string ParameterShard::WhatPush(const PushPart& header) const {
  return What(
      absl::StrCat("push of step ", header.step(), " part ", header.part()),
      header.sender());
}

absl::StatusOr<Frame<PushReply>> ParameterShard::PushUncounted(
    const Frame<PushPart>& request, const PushContext& context) {
  const PushPart& header = request.header;
  RETURN_IF_ERROR(CheckPhase(header.sender(), header.fence(), READY));
  const std::string what = WhatPush(header);
  RETURN_IF_ERROR(CheckPushNumbers(what, header));
  RETURN_IF_ERROR(held_.CheckPush(what));
  ASSIGN_OR_RETURN(const Codec* const values_codec,
                   CodecOf(what, header.values_codec()));
  ASSIGN_OR_RETURN(const std::optional<PartOutcome> outcome,
                   marks_.FindOutcome(header.sender(), header.step(),
                                      header.part(), header.parts()));
  if (outcome.has_value()) {
    ASSIGN_OR_RETURN(
        absl::Cord values,
        ValuesOfDuplicate(what, header, values_codec, context.memory));
    return Frame<PushReply>{MakePushReply(*outcome, /*duplicate=*/true),
                            std::move(values)};
  }
  ASSIGN_OR_RETURN(PushedPart part, CheckPart(what, request, context));
  ASSIGN_OR_RETURN(const PartFate fate,
                   policy_->CheckPart(what, part, tensors_));
  part.publish_codec = values_codec;
  const PartOutcome counted = CountPart(part, fate);
  part.staleness = counted.staleness;
  absl::Cord values =
      TakePart(std::move(part), fate, header.wants_values(), context.memory);
  return Frame<PushReply>{MakePushReply(counted, /*duplicate=*/false),
                          std::move(values)};
}

absl::Cord ParameterShard::TakePart(PushedPart part, PartFate fate,
                                    bool wants_values,
                                    const ValueMemory& memory) {
  const std::vector<CheckedSlice> slices = part.slices;
  const Codec* const codec = part.publish_codec;
  const auto take = [&] {
    if (fate != PartFate::kTaken) return;
    policy_->OnPart(std::move(part), tensors_, *this);
  };
  if (!wants_values || slices.empty()) {
    take();
    return absl::Cord();
  }
  if (memory == nullptr && codec == nullptr) {
    take();
    return ValuesOf(slices, codec, memory);
  }
  return MakeValues(slices, codec, memory, [&](char* data) {
    part.publish_to = data;
    take();
    if (std::exchange(is_published_, false)) return;
    WriteValues(tensors_, slices, codec, data);
  });
}

absl::StatusOr<absl::Cord> ParameterShard::ValuesOfDuplicate(
    absl::string_view what, const PushPart& header, const Codec* codec,
    const ValueMemory& memory) {
  if (!header.wants_values()) return absl::Cord();
  // They were not looked at this time.
  ASSIGN_OR_RETURN(
      const std::vector<CheckedSlice> slices,
      CheckSlices(what, header.slices(), tensors_, SliceUnit::kElements));
  return ValuesOf(slices, codec, memory);
}

PushReply ParameterShard::MakePushReply(const PartOutcome& outcome,
                                        bool duplicate) const {
  PushReply reply;
  reply.set_duplicate(duplicate);
  reply.set_staleness(outcome.staleness);
  reply.set_late(outcome.late);
  reply.set_version(version_);
  return reply;
}

absl::Cord ParameterShard::ValuesOf(const std::vector<CheckedSlice>& slices,
                                    const Codec* codec,
                                    const ValueMemory& memory) {
  if (memory == nullptr && codec == nullptr) {
    return ValueCord(tensors_, slices, &replies_);
  }
  return MakeValues(slices, codec, memory, [&](char* data) {
    WriteValues(tensors_, slices, codec, data);
  });
}

absl::Cord ParameterShard::MakeValues(
    const std::vector<CheckedSlice>& slices, const Codec* codec,
    const ValueMemory& memory, absl::FunctionRef<void(char* data)> fill) {
  const auto bytes =
      static_cast<size_t>(EncodedBytes(codec, SliceElements(slices)));
  if (bytes == 0) return absl::Cord();
  return memory == nullptr ? replies_.Make(bytes, fill) : memory(bytes, fill);
}

absl::StatusOr<PushedPart> ParameterShard::CheckPart(
    absl::string_view what, const Frame<PushPart>& request,
    const PushContext& context) const {
  const PushPart& header = request.header;
  PushedPart part = MakePart(header);
  ASSIGN_OR_RETURN(part.slices, CheckSlices(what, header.slices(), tensors_,
                                            SliceUnit::kWholeBlocks));
  ASSIGN_OR_RETURN(part.codec, CodecOf(what, header.codec()));
  RETURN_IF_ERROR(CheckDataSize(what, part.slices, SliceUnit::kWholeBlocks,
                                request.data.size(), part.codec));
  part.data = request.data;
  // Encoded, they are no float32.
  part.is_finite = context.is_finite && part.codec == nullptr;
  if (!allow_non_finite_) {
    RETURN_IF_ERROR(applier_.CheckFinitePart(what, part, tensors_));
  }
  return part;
}

PushedPart ParameterShard::MakePart(const PushPart& header) const {
  PushedPart part;
  part.sender = header.sender();
  part.step = header.step();
  part.part = header.part();
  part.parts = header.parts();
  part.round = header.round();
  part.begins_step = marks_.IsNewStep(part.sender, part.step);
  part.staleness = version_ - header.pulled_version();
  return part;
}

absl::Status ParameterShard::CheckPushNumbers(absl::string_view what,
                                              const PushPart& header) const {
  if (header.step() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": steps are counted from 1"));
  }
  if (header.parts() < 1 || header.parts() > DuplicateMarks::kMaxParts ||
      header.part() < 0 || header.part() >= header.parts()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": part ", header.part(), " of ", header.parts(),
        "; wanted 0 <= part < parts <= ", DuplicateMarks::kMaxParts));
  }
  if (header.pulled_version() < 0 || header.pulled_version() > version_) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": pulled version ", header.pulled_version(),
                     ", the shard is at version ", version_));
  }
  return absl::OkStatus();
}

PartOutcome ParameterShard::CountPart(const PushedPart& part, PartFate fate) {
  const bool late = fate == PartFate::kLate;
  if (late) {
    ++counters_.late_parts;
  } else if (part.begins_step) {
    counters_.staleness_sum += part.staleness;
    ++counters_.staleness_count;
    counters_.staleness_max = std::max(counters_.staleness_max, part.staleness);
  }
  return marks_.Record(part.sender, part.step, part.part, part.parts,
                       {part.staleness, late});
}

void ParameterShard::CountUpdate() {
  ++version_;
  ++counters_.steps;
}

void ParameterShard::Apply(const PushedPart& part) {
  applier_.ApplyPart(part,
                     {&tensors_, rule_.get(), &snapshot_, held_.holder()});
  held_.SetBehind();
  is_published_ = part.publish_to != nullptr;
}

void ParameterShard::ApplyToAll(BlockGradient gradient) {
  applier_.ApplyToAll(gradient, {&tensors_, rule_.get(), &snapshot_});
}

absl::StatusOr<std::shared_ptr<const ParameterMemory>>
ParameterShard::ParametersInPlace(int64_t model_epoch) const {
  const std::string what =
      absl::StrCat("reading the parameters of /job:ps/task:", options_.ps_index,
                   " in place");
  if (phase_ != READY || model_epoch != model_epoch_) {
    return Fenced(what, absl::StrCat("wanted model epoch ", model_epoch,
                                     ", the shard is ", ShardPhase_Name(phase_),
                                     " at epoch ", model_epoch_));
  }
  if (!pulled_in_place_) {
    return absl::FailedPreconditionError(
        absl::StrCat(what,
                     ": the model was defined without replication.async.pull: "
                     "IN_PLACE"));
  }
  if (held_.holder() != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": they are held elsewhere"));
  }
  return tensors_.memory();
}

absl::Status ParameterShard::KeepOnDevice(const Sender& sender,
                                          const Fence& fence,
                                          DeviceParameters* holder) {
  RETURN_IF_ERROR(CheckPhase(sender, fence, READY));
  const std::string what = What("holding the parameters", sender);
  if (policy_->name() != kHoldableMode) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": the replication is ", policy_->name(),
                     ", wanted ", kHoldableMode));
  }
  return held_.Hold(what, sender, holder, &tensors_);
}

absl::StatusOr<PushReply> ParameterShard::UpdateOnDevice(
    const PushPart& request) {
  absl::StatusOr<PushReply> reply = UpdateOnDeviceUncounted(request);
  CountReply(reply.status(), reply.ok() ? *reply : PushReply());
  return reply;
}

absl::StatusOr<PushReply> ParameterShard::UpdateOnDeviceUncounted(
    const PushPart& request) {
  RETURN_IF_ERROR(CheckPhase(request.sender(), request.fence(), READY));
  const std::string what = WhatPush(request);
  RETURN_IF_ERROR(CheckPushNumbers(what, request));
  RETURN_IF_ERROR(held_.CheckUpdate(what, request.sender()));
  ASSIGN_OR_RETURN(const std::optional<PartOutcome> outcome,
                   marks_.FindOutcome(request.sender(), request.step(),
                                      request.part(), request.parts()));
  if (outcome.has_value()) return MakePushReply(*outcome, /*duplicate=*/true);
  PushedPart part = MakePart(request);
  part.slices = held_.slices();
  ASSIGN_OR_RETURN(const PartFate fate,
                   policy_->CheckPart(what, part, tensors_));
  const PartOutcome counted = CountPart(part, fate);
  part.staleness = counted.staleness;
  policy_->OnPart(std::move(part), tensors_, *this);
  return MakePushReply(counted, /*duplicate=*/false);
}

ShardState ParameterShard::State() const {
  ShardState state;
  state.set_phase(phase_);
  state.set_model_epoch(model_epoch_);
  state.set_fingerprint(fingerprint_);
  state.set_version(version_);
  state.set_tensors(tensors_.size());
  state.set_bytes(tensors_.parameter_bytes());
  state.set_slot_bytes(tensors_.slot_bytes());
  state.set_applied_parts(counters_.applied_parts);
  state.set_duplicate_parts(counters_.duplicate_parts);
  state.set_fenced_parts(counters_.fenced_parts);
  return state;
}

ShardCounters ParameterShard::counters() const {
  ShardCounters counters = counters_;
  counters.unfinished_steps = marks_.unfinished_steps();
  counters.given_up_snapshots = snapshot_.times_given_up();
  return counters;
}

}  // namespace muster
