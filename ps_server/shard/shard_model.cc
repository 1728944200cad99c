#include "ps_server/shard/shard_model.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "ps_server/block/value_cord.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/shard/push_numbers.h"
#include "ps_server/shard/request_name.h"
#include "ps_server/shard/stored_gradient.h"

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

// The replication in which each push is one update of its blocks.
constexpr absl::string_view kHoldableMode = "async";

}  // namespace

ShardModel::ShardModel(const ShardOptions& options, BufferPool* replies)
    : options_(options),
      replies_(replies),
      applier_(options.apply_team),
      epoch_(options.ps_index) {}

std::string ShardModel::What(absl::string_view request,
                             const Sender& sender) const {
  return RequestName(request, sender, options_.ps_index);
}

absl::StatusOr<DefineReply> ShardModel::Define(const DefineRequest& request,
                                               int64_t max_bytes) {
  const std::string what = What("define", request.sender());
  RETURN_IF_ERROR(epoch_.CheckNew(what, request.model_epoch()));
  absl::StatusOr<ShardDefinition> definition =
      CheckDefinition(request, options_, max_bytes);
  RETURN_IF_ERROR(Annotate(definition.status(), what));
  RETURN_IF_ERROR(Annotate(ReplaceTensors(request, *definition), what));
  definition_ = *std::move(definition);
  max_bytes_ = max_bytes;
  epoch_.Begin(request.model_epoch());

  DefineReply reply;
  tables_.AddStates(reply.mutable_tables());
  for (const SlotDef& slot : definition_.rule->slots()) {
    reply.add_slots(slot.name);
  }
  return reply;
}

absl::Status ShardModel::ReplaceTensors(const DefineRequest& request,
                                        const ShardDefinition& definition) {
  snapshot_.Clear();
  held_.End();
  // The old values go first: both together might not fit.
  tensors_ = TensorTable();
  tables_ = RowTables();
  loaded_.clear();
  marks_.Clear();
  epoch_.Clear();
  version_ = 0;
  const bool is_shared =
      definition.may_be_read_in_place && options_.shares_memory;
  ASSIGN_OR_RETURN(tensors_, TensorTable::Create(
                                 request.tensors(), definition.rule->slots(),
                                 is_shared ? TensorTable::Sharing::kShared
                                           : TensorTable::Sharing::kPrivate));
  loaded_.assign(tensors_.size(), ElementRanges());
  ASSIGN_OR_RETURN(tables_, RowTables::Create(request));
  return absl::OkStatus();
}

StreamSlices::Model ShardModel::StreamsOfModel() const {
  return {definition_.optimizer_name, definition_.rule->slots(), tensors_};
}

absl::StatusOr<LoadReply> ShardModel::Load(const Frame<LoadPart>& request) {
  const LoadPart& header = request.header;
  // After Seal this is a late repeat, and training goes on: refused too.
  RETURN_IF_ERROR(epoch_.CheckPhase(header.sender(), header.fence(), LOADING));
  const std::string what = What("load", header.sender());
  RETURN_IF_ERROR(header.has_rows()
                      ? tables_.Load(what, request,
                                     definition_.allow_non_finite, RowRoom(),
                                     definition_.updates)
                      : LoadSlices(what, request));
  return LoadReply();
}

absl::Status ShardModel::LoadSlices(absl::string_view what,
                                    const Frame<LoadPart>& request) {
  const LoadPart& header = request.header;
  ASSIGN_OR_RETURN(const StreamSlices stream,
                   StreamSlices::Create(what, header.slot(), header.slices(),
                                        StreamsOfModel()));
  RETURN_IF_ERROR(stream.CheckData(what, request.data));
  if (!definition_.allow_non_finite && !stream.is_counts()) {
    RETURN_IF_ERROR(CheckFinite(what, stream.slices(), tensors_, request.data));
  }
  stream.Load(request.data, tensors_);
  if (!stream.is_parameter()) return absl::OkStatus();
  for (const CheckedSlice& slice : stream.slices()) {
    loaded_[slice.tensor].Add(slice.offset, slice.offset + slice.length);
  }
  return absl::OkStatus();
}

absl::StatusOr<SealReply> ShardModel::Seal(const SealRequest& request) {
  RETURN_IF_ERROR(epoch_.CheckFence(request.sender(), request.fence()));
  for (int i = 0; epoch_.phase() == LOADING && i < tensors_.size(); ++i) {
    const TensorBlocks& tensor = tensors_[i];
    const int64_t missing = loaded_[i].FirstMissing();
    if (missing >= tensor.elements()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(What("seal", request.sender()), ": '", tensor.def().name(),
                     "' is not loaded from element ", tensor.begin() + missing,
                     " of ", tensor.whole_elements(), "; load it first"));
  }
  loaded_.clear();
  epoch_.Seal();
  SealReply reply;
  *reply.mutable_state() = State();
  return reply;
}

absl::StatusOr<BeginSnapshotReply> ShardModel::BeginSnapshot(
    const BeginSnapshotRequest& request) {
  RETURN_IF_ERROR(epoch_.CheckPhase(request.sender(), request.fence(), READY));
  RETURN_IF_ERROR(
      definition_.policy->OnCut(What("begin snapshot", request.sender()),
                                request.token(), tensors_, *this));
  RETURN_IF_ERROR(held_.WriteBack());
  snapshot_.Begin(next_snapshot_++, RowRoom() - tables_.bytes());
  tables_.BeginSnapshot(snapshot_);
  if (recorder_ != nullptr) recorder_->BeginSave();
  snapshot_owner_ = request.sender();
  BeginSnapshotReply reply;
  reply.set_snapshot(snapshot_.id());
  reply.set_version(version_);
  std::optional<std::vector<DuplicateMark>> marks =
      definition_.policy->AppliedSteps();
  if (!marks.has_value()) marks = marks_.Export();
  for (DuplicateMark& mark : *marks) *reply.add_marks() = std::move(mark);
  for (HeldStep& held : marks_.HeldSteps()) {
    *reply.add_held() = std::move(held);
  }
  reply.set_is_pushed_to(has_tables() || BlockNumbers(tensors_).total() > 0);
  tables_.AddStates(reply.mutable_tables());
  return reply;
}

absl::StatusOr<Frame<SnapshotPart>> ShardModel::ReadSnapshot(
    const ReadSnapshotRequest& request) {
  RETURN_IF_ERROR(epoch_.CheckPhase(request.sender(), request.fence(), READY));
  const std::string what = What("read snapshot", request.sender());
  RETURN_IF_ERROR(snapshot_.Check(what, request.snapshot()));
  if (!request.table().empty()) {
    return tables_.ReadSnapshot(what, request, &snapshot_, replies_);
  }
  ASSIGN_OR_RETURN(const StreamSlices stream,
                   StreamSlices::Create(what, request.slot(), request.slices(),
                                        StreamsOfModel()));
  Frame<SnapshotPart> reply;
  *reply.header.mutable_slices() = request.slices();
  reply.data = replies_->Make(stream.bytes(), [&](char* data) {
    stream.Read(snapshot_, tensors_, data);
  });
  return reply;
}

absl::StatusOr<EndSnapshotReply> ShardModel::EndSnapshot(
    const EndSnapshotRequest& request) {
  RETURN_IF_ERROR(epoch_.CheckFence(request.sender(), request.fence()));
  snapshot_.End(request.snapshot());
  if (!has_snapshot()) {
    tables_.ClearSnapshot();
    if (recorder_ != nullptr) recorder_->EndSave();
  }
  return EndSnapshotReply();
}

absl::StatusOr<Frame<PullReply>> ShardModel::Pull(const PullRequest& request,
                                                  const ValueMemory& memory) {
  RETURN_IF_ERROR(epoch_.CheckPhase(request.sender(), request.fence(), READY));
  const std::string what = What("pull", request.sender());
  ASSIGN_OR_RETURN(
      const std::vector<CheckedSlice> slices,
      CheckSlices(what, request.slices(), tensors_, SliceUnit::kElements));
  ASSIGN_OR_RETURN(const Codec* const codec, CodecOf(what, request.codec()));
  RETURN_IF_ERROR(
      definition_.policy->OnToken(what, request.token(), tensors_, *this));
  definition_.policy->BeforeRead(slices, tensors_, *this);
  if (!slices.empty()) RETURN_IF_ERROR(Annotate(held_.WriteBack(), what));
  Frame<PullReply> reply;
  reply.header.set_version(version_);
  *reply.header.mutable_slices() = request.slices();
  if (!request.in_place()) reply.data = ValuesOf(slices, codec, memory);
  return reply;
}

absl::StatusOr<Frame<PullRowsReply>> ShardModel::PullRows(
    const Frame<PullRowsRequest>& request, const ValueMemory& memory) {
  const PullRowsRequest& header = request.header;
  RETURN_IF_ERROR(epoch_.CheckPhase(header.sender(), header.fence(), READY));
  const std::string what = What("pull of rows", header.sender());
  ASSIGN_OR_RETURN(const RowTables::Wanted wanted,
                   tables_.CheckPull(what, request));
  RETURN_IF_ERROR(
      definition_.policy->OnToken(what, header.token(), tensors_, *this));
  Frame<PullRowsReply> reply;
  reply.header.set_version(version_);
  reply.data = MakeValues(wanted.bytes, memory,
                          [&](char* data) { tables_.Read(wanted, data); });
  return reply;
}

absl::StatusOr<Frame<PushReply>> ShardModel::Push(
    const Frame<PushPart>& request, const PushContext& context) {
  absl::StatusOr<Frame<PushReply>> reply = PushUncounted(request, context);
  counters_.CountReply(reply.status(),
                       reply.ok() ? reply->header : PushReply());
  return reply;
}

std::string ShardModel::WhatPush(const PushPart& header) const {
  return What(
      absl::StrCat("push of step ", header.step(), " part ", header.part()),
      header.sender());
}

absl::StatusOr<Frame<PushReply>> ShardModel::PushUncounted(
    const Frame<PushPart>& request, const PushContext& context) {
  const PushPart& header = request.header;
  RETURN_IF_ERROR(epoch_.CheckPhase(header.sender(), header.fence(), READY));
  const std::string what = WhatPush(header);
  RETURN_IF_ERROR(CheckPushNumbers(what, header, version_));
  RETURN_IF_ERROR(held_.CheckPush(what));
  // The sums with state tensors are looked at, and values may be asked for.
  definition_.policy->Settle(tensors_, *this);
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
                   definition_.policy->CheckPart(what, part, tensors_));
  if (fate == PartFate::kAccepted) {
    RETURN_IF_ERROR(tables_.Reserve(what, part.rows, RowRoom(), &snapshot_));
  }
  part.publish_codec = values_codec;
  const PartOutcome counted = CountPart(part, fate, header.counts());
  part.staleness = counted.staleness;
  absl::Cord values =
      AcceptPart(std::move(part), fate, header.wants_values(), context.memory);
  return Frame<PushReply>{MakePushReply(counted, /*duplicate=*/false),
                          std::move(values)};
}

absl::Cord ShardModel::AcceptPart(PushedPart part, PartFate fate,
                                  bool wants_values,
                                  const ValueMemory& memory) {
  const std::vector<CheckedSlice> slices = part.slices;
  const Codec* const codec = part.publish_codec;
  // Whether the new values are at part.publish_to.
  const auto accept = [&] {
    const bool is_published =
        fate == PartFate::kAccepted &&
        definition_.policy->OnPart(std::move(part), tensors_, *this);
    if (recorder_ != nullptr) recorder_->NoteTaken(fate == PartFate::kLate);
    return is_published;
  };
  Note("check");
  if (!wants_values || slices.empty()) {
    accept();
    return absl::Cord();
  }
  if (memory == nullptr && codec == nullptr) {
    accept();
    return ValuesOf(slices, codec, memory);
  }
  const int64_t bytes = EncodedBytes(codec, SliceElements(slices));
  return MakeValues(bytes, memory, [&](char* data) {
    part.publish_to = data;
    if (!accept()) WriteValues(tensors_, slices, codec, data);
  });
}

absl::StatusOr<absl::Cord> ShardModel::ValuesOfDuplicate(
    absl::string_view what, const PushPart& header, const Codec* codec,
    const ValueMemory& memory) {
  if (!header.wants_values()) return absl::Cord();
  // They were not looked at this time.
  ASSIGN_OR_RETURN(
      const std::vector<CheckedSlice> slices,
      CheckSlices(what, header.slices(), tensors_, SliceUnit::kElements));
  return ValuesOf(slices, codec, memory);
}

PushReply ShardModel::MakePushReply(const PartOutcome& outcome,
                                    bool duplicate) const {
  PushReply reply;
  reply.set_duplicate(duplicate);
  reply.set_staleness(outcome.staleness);
  reply.set_late(outcome.late);
  reply.set_version(version_);
  return reply;
}

absl::Cord ShardModel::ValuesOf(const std::vector<CheckedSlice>& slices,
                                const Codec* codec, const ValueMemory& memory) {
  if (memory == nullptr && codec == nullptr) {
    return ValueCord(tensors_, slices, replies_);
  }
  const int64_t bytes = EncodedBytes(codec, SliceElements(slices));
  return MakeValues(bytes, memory, [&](char* data) {
    WriteValues(tensors_, slices, codec, data);
  });
}

absl::Cord ShardModel::MakeValues(int64_t bytes, const ValueMemory& memory,
                                  absl::FunctionRef<void(char* data)> fill) {
  if (bytes == 0) return absl::Cord();
  return memory == nullptr ? replies_->Make(bytes, fill) : memory(bytes, fill);
}

absl::StatusOr<PushedPart> ShardModel::CheckPart(
    absl::string_view what, const Frame<PushPart>& request,
    const PushContext& context) const {
  const PushPart& header = request.header;
  PushedPart part = MakePart(header);
  if (header.is_rows() || !header.rows().empty()) {
    ASSIGN_OR_RETURN(
        part.rows,
        tables_.CheckPart(what, request, definition_.allow_non_finite));
    return part;
  }
  ASSIGN_OR_RETURN(part.slices, CheckSlices(what, header.slices(), tensors_,
                                            SliceUnit::kWholeBlocks));
  RETURN_IF_ERROR(CheckMayChange(what, part.slices, tensors_));
  ASSIGN_OR_RETURN(part.codec, CodecOf(what, header.codec()));
  RETURN_IF_ERROR(CheckDataSize(what, part.slices, SliceUnit::kWholeBlocks,
                                request.data.size(), part.codec));
  part.data = request.data;
  part.has_own_memory = context.has_own_memory;
  // Encoded, they are no float32.
  part.is_finite = context.is_finite && part.codec == nullptr;
  if (!definition_.allow_non_finite) {
    RETURN_IF_ERROR(applier_.CheckFinitePart(what, part, tensors_));
  }
  return part;
}

PushedPart ShardModel::MakePart(const PushPart& header) const {
  PushedPart part;
  part.sender = header.sender();
  part.step = header.step();
  part.part = header.part();
  part.parts = header.parts();
  part.round = header.round();
  part.begins_step = marks_.IsNewStep(part.sender, part.step);
  part.staleness = version_ - header.pulled_version();
  // 0 stands for 1.
  if (header.learning_rate_factor() != 0) {
    part.rate_factor = header.learning_rate_factor();
  }
  return part;
}

PartOutcome ShardModel::CountPart(const PushedPart& part, PartFate fate,
                                  const StepCounts& counts) {
  const bool late = fate == PartFate::kLate;
  if (late) {
    ++counters_.late_parts;
  } else if (part.begins_step) {
    counters_.CountStaleness(part.staleness);
  }
  return marks_.Record(part.sender, part.step, part.part, part.parts,
                       {part.staleness, late}, counts);
}

absl::StatusOr<std::shared_ptr<const ParameterMemory>>
ShardModel::ParametersInPlace(int64_t model_epoch) const {
  const std::string what =
      absl::StrCat("reading the parameters of /job:ps/task:", options_.ps_index,
                   " in place");
  RETURN_IF_ERROR(epoch_.CheckReady(what, model_epoch));
  if (!definition_.may_be_read_in_place) {
    return absl::FailedPreconditionError(
        absl::StrCat(what,
                     ": the model was defined without replication.sync or "
                     "replication.async.pull: IN_PLACE"));
  }
  if (held_.holder() != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": they are held elsewhere"));
  }
  return tensors_.memory();
}

absl::Status ShardModel::KeepOnDevice(const Sender& sender, const Fence& fence,
                                      DeviceParameters* holder) {
  RETURN_IF_ERROR(epoch_.CheckPhase(sender, fence, READY));
  const std::string what = What("holding the parameters", sender);
  if (has_tables()) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": the model has tables, which stay here"));
  }
  if (definition_.policy->name() != kHoldableMode) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": the replication is ", definition_.policy->name(),
                     ", wanted ", kHoldableMode));
  }
  return held_.Hold(what, sender, holder, &tensors_);
}

absl::StatusOr<PushReply> ShardModel::UpdateOnDevice(const PushPart& request) {
  absl::StatusOr<PushReply> reply = UpdateOnDeviceUncounted(request);
  counters_.CountReply(reply.status(), reply.ok() ? *reply : PushReply());
  return reply;
}

absl::StatusOr<PushReply> ShardModel::UpdateOnDeviceUncounted(
    const PushPart& request) {
  RETURN_IF_ERROR(epoch_.CheckPhase(request.sender(), request.fence(), READY));
  const std::string what = WhatPush(request);
  RETURN_IF_ERROR(CheckPushNumbers(what, request, version_));
  RETURN_IF_ERROR(held_.CheckUpdate(what, request.sender()));
  ASSIGN_OR_RETURN(const std::optional<PartOutcome> outcome,
                   marks_.FindOutcome(request.sender(), request.step(),
                                      request.part(), request.parts()));
  if (outcome.has_value()) return MakePushReply(*outcome, /*duplicate=*/true);
  PushedPart part = MakePart(request);
  part.slices = held_.slices();
  ASSIGN_OR_RETURN(const PartFate fate,
                   definition_.policy->CheckPart(what, part, tensors_));
  const PartOutcome counted = CountPart(part, fate, request.counts());
  part.staleness = counted.staleness;
  definition_.policy->OnPart(std::move(part), tensors_, *this);
  return MakePushReply(counted, /*duplicate=*/false);
}

void ShardModel::Forget(const Sender& sender) {
  marks_.Forget(sender);
  // Nobody else knows that there is a snapshot, and it costs memory.
  if (KeyOf(snapshot_owner_) != KeyOf(sender)) return;
  snapshot_.Clear();
  tables_.ClearSnapshot();
}

}  // namespace muster
