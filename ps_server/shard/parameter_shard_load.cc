// The chief's side of ParameterShard: Define, Load, Seal and snapshots.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "ps_server/block/float_runs.h"
#include "ps_server/caller/count_range.h"
#include "ps_server/shard/parameter_shard.h"

namespace muster {
namespace {

constexpr absl::string_view kCountsSlot = "t";

std::string SlotNames(const UpdateRule& rule) {
  return absl::StrJoin(rule.slots(), ", ",
                       [](std::string* out, const SlotDef& slot) {
                         absl::StrAppend(out, "'", slot.name, "'");
                       });
}

// What is to be had beside parameters and slots: for the gradients of a round,
// and for the copies of a snapshot.
struct Room {
  int64_t gradient_bytes;
  int64_t copy_bytes;
};

// Half each, if gradients are kept.
Room RoomBeside(const ReplicationSpec& replication, int64_t left_bytes) {
  const int64_t gradient_bytes = replication.has_sync() ? left_bytes / 2 : 0;
  return {gradient_bytes, left_bytes - gradient_bytes};
}

std::vector<int64_t> ReadCounts(const absl::Cord& data) {
  std::vector<int64_t> counts(data.size() / sizeof(int64_t));
  char* dst = reinterpret_cast<char*>(counts.data());
  for (const absl::string_view chunk : data.Chunks()) {
    std::memcpy(dst, chunk.data(), chunk.size());
    dst += chunk.size();
  }
  return counts;
}

}  // namespace

absl::StatusOr<DefineReply> ParameterShard::Define(
    const DefineRequest& request) {
  RETURN_IF_ERROR(CheckSender(request.sender(), request.ps_incarnation()));
  const std::string what = What("define", request.sender());
  const int64_t epoch = request.model_epoch();
  if (epoch < model_epoch_ || (epoch == model_epoch_ && phase_ != LOADING)) {
    return FencedError(absl::StrCat(what, ": model epoch ", epoch,
                                    "; the shard is ", ShardPhase_Name(phase_),
                                    " at epoch ", model_epoch_,
                                    ", a new load needs a larger one"));
  }
  if (!IsCount(epoch)) {  // the next one would not be larger
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": model epoch ", epoch, " is above ", kMaxCount));
  }
  // A shard that was started anew may come to a job that was restored often.
  if (model_epoch_ != 0 && epoch - model_epoch_ > kMaxEpochJump) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": model epoch ", epoch,
        " is no count of restores: ", "the shard is at ", model_epoch_));
  }
  absl::StatusOr<std::unique_ptr<UpdateRule>> rule =
      CreateUpdateRule(request.optimizer());
  RETURN_IF_ERROR(Annotate(rule.status(), what));
  const absl::Span<const SlotDef> slots = (*rule)->slots();
  const absl::StatusOr<int64_t> left = CheckTensorDefs(
      request.tensors(), static_cast<int>(slots.size()), options_.max_bytes);
  RETURN_IF_ERROR(Annotate(left.status(), what));
  const Room room = RoomBeside(request.replication(), *left);
  absl::StatusOr<std::unique_ptr<ReplicationPolicy>> policy =
      CreateReplicationPolicy(
          request.replication(),
          std::min(options_.max_gradient_bytes, room.gradient_bytes));
  RETURN_IF_ERROR(Annotate(policy.status(), what));

  RETURN_IF_ERROR(Annotate(ReplaceTensors(request, slots), what));
  rule_ = *std::move(rule);
  policy_ = *std::move(policy);
  max_copy_bytes_ = room.copy_bytes;
  optimizer_name_ = request.optimizer().name();
  fingerprint_ = request.fingerprint();
  allow_non_finite_ = request.allow_non_finite();
  model_epoch_ = epoch;
  phase_ = LOADING;

  DefineReply reply;
  for (const SlotDef& slot : rule_->slots()) reply.add_slots(slot.name);
  return reply;
}

absl::Status ParameterShard::ReplaceTensors(const DefineRequest& request,
                                            absl::Span<const SlotDef> slots) {
  snapshot_.Clear();
  held_.End();
  // The old values go first: both together might not fit.
  tensors_ = TensorTable();
  loaded_.clear();
  marks_.ForgetSteps();
  phase_ = EMPTY;
  fingerprint_ = 0;
  version_ = 0;
  pulled_in_place_ = request.replication().async().pull() == IN_PLACE;
  ASSIGN_OR_RETURN(
      tensors_, TensorTable::Create(request.tensors(), slots,
                                    pulled_in_place_ && options_.shares_memory
                                        ? TensorTable::Sharing::kShared
                                        : TensorTable::Sharing::kPrivate));
  loaded_.assign(tensors_.size(), ElementRanges());
  return absl::OkStatus();
}

absl::StatusOr<int> ParameterShard::FindStream(absl::string_view slot) const {
  if (slot.empty()) return 0;
  if (slot == kCountsSlot) return kCounts;
  const absl::Span<const SlotDef> slots = rule_->slots();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].name == slot) return static_cast<int>(1 + i);
  }
  return absl::NotFoundError(
      absl::StrCat("optimizer '", optimizer_name_, "' has no slot '",
                   absl::CHexEscape(slot.substr(0, 80)), "'; it has ",
                   slots.empty() ? "none" : SlotNames(*rule_), " and 't'"));
}

absl::Status ParameterShard::CheckHasStream(
    absl::string_view what, int stream,
    const std::vector<CheckedSlice>& slices) const {
  if (stream == 0) return absl::OkStatus();
  for (const CheckedSlice& slice : slices) {
    const TensorDef& def = tensors_[slice.tensor].def();
    if (def.kind() == TRAINABLE) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": '", def.name(), "' is a state tensor and has no slots"));
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadReply> ParameterShard::Load(const Frame<LoadPart>& request) {
  const LoadPart& header = request.header;
  // After Seal this is a late repeat, and training goes on: refused too.
  RETURN_IF_ERROR(CheckPhase(header.sender(), header.fence(), LOADING));
  const std::string what = What("load", header.sender());
  const absl::StatusOr<int> stream = FindStream(header.slot());
  RETURN_IF_ERROR(Annotate(stream.status(), what));
  const SliceUnit unit =
      *stream == kCounts ? SliceUnit::kBlockCounts : SliceUnit::kElements;
  ASSIGN_OR_RETURN(const std::vector<CheckedSlice> slices,
                   CheckSlices(what, header.slices(), tensors_, unit));
  RETURN_IF_ERROR(CheckHasStream(what, *stream, slices));
  RETURN_IF_ERROR(CheckDataSize(what, slices, unit, request.data.size()));
  if (*stream == kCounts) {
    RETURN_IF_ERROR(LoadCounts(what, slices, request.data));
  } else {
    if (!allow_non_finite_) {
      RETURN_IF_ERROR(CheckFinite(what, slices, tensors_, request.data));
    }
    LoadValues(*stream, slices, request.data);
  }
  return LoadReply();
}

void ParameterShard::LoadValues(int stream,
                                const std::vector<CheckedSlice>& slices,
                                const absl::Cord& data) {
  FloatRuns runs(data);
  for (const CheckedSlice& slice : slices) {
    TensorBlocks& tensor = tensors_[slice.tensor];
    const int64_t end = slice.offset + slice.length;
    for (int64_t offset = slice.offset; offset < end;) {
      const int64_t block = offset / kBlockElements;
      const int64_t begin = offset - block * kBlockElements;
      const absl::Span<const float> run = runs.Next(
          std::min(end - offset, tensor.BlockElements(block) - begin));
      std::copy(run.begin(), run.end(), tensor.Stream(block, stream) + begin);
      offset += static_cast<int64_t>(run.size());
    }
    if (stream == 0) loaded_[slice.tensor].Add(slice.offset, end);
  }
}

absl::Status ParameterShard::LoadCounts(absl::string_view what,
                                        const std::vector<CheckedSlice>& slices,
                                        const absl::Cord& data) {
  const std::vector<int64_t> counts = ReadCounts(data);
  if (std::any_of(counts.begin(), counts.end(),
                  [](int64_t count) { return !IsCount(count); })) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": slot 't' has a count of updates that is out of range"));
  }
  auto next = counts.begin();
  for (const CheckedSlice& slice : slices) {
    for (int64_t i = 0; i < slice.length; ++i) {
      tensors_[slice.tensor].set_updates(slice.offset + i, *next++);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SealReply> ParameterShard::Seal(const SealRequest& request) {
  RETURN_IF_ERROR(CheckFence(request.sender(), request.fence()));
  for (int i = 0; phase_ == LOADING && i < tensors_.size(); ++i) {
    const int64_t missing = loaded_[i].FirstMissing();
    if (missing >= tensors_[i].elements()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        What("seal", request.sender()), ": '", tensors_[i].def().name(),
        "' is not loaded from element ", missing, " of ",
        tensors_[i].elements(), "; load it first"));
  }
  loaded_.clear();
  phase_ = READY;
  SealReply reply;
  *reply.mutable_state() = State();
  return reply;
}

absl::StatusOr<BeginSnapshotReply> ParameterShard::BeginSnapshot(
    const BeginSnapshotRequest& request) {
  RETURN_IF_ERROR(CheckPhase(request.sender(), request.fence(), READY));
  RETURN_IF_ERROR(policy_->OnCut(What("begin snapshot", request.sender()),
                                 request.token(), tensors_, *this));
  RETURN_IF_ERROR(held_.WriteBack());
  snapshot_.Begin(next_snapshot_++, max_copy_bytes_);
  snapshot_owner_ = request.sender();
  BeginSnapshotReply reply;
  reply.set_snapshot(snapshot_.id());
  reply.set_version(version_);
  std::optional<std::vector<DuplicateMark>> marks = policy_->AppliedSteps();
  if (!marks.has_value()) marks = marks_.Export();
  for (DuplicateMark& mark : *marks) *reply.add_marks() = std::move(mark);
  return reply;
}

absl::Status ParameterShard::CheckSnapshot(absl::string_view what,
                                           uint64_t snapshot) const {
  if (snapshot != 0 && snapshot == snapshot_.id()) return absl::OkStatus();
  if (snapshot != 0 && snapshot == snapshot_.given_up()) {
    return absl::AbortedError(absl::StrCat(
        what, ": snapshot ", snapshot,
        " was given up, so that training goes on: copies of what it changes ",
        "would pass the ", max_copy_bytes_,
        " bytes left beside the model; use more ps tasks, or more memory"));
  }
  return absl::AbortedError(
      absl::StrCat(what, ": snapshot ", snapshot, " has ended; begin another"));
}

absl::StatusOr<Frame<SnapshotPart>> ParameterShard::ReadSnapshot(
    const ReadSnapshotRequest& request) {
  RETURN_IF_ERROR(CheckPhase(request.sender(), request.fence(), READY));
  const std::string what = What("read snapshot", request.sender());
  RETURN_IF_ERROR(CheckSnapshot(what, request.snapshot()));
  const absl::StatusOr<int> stream = FindStream(request.slot());
  RETURN_IF_ERROR(Annotate(stream.status(), what));
  const SliceUnit unit =
      *stream == kCounts ? SliceUnit::kBlockCounts : SliceUnit::kElements;
  ASSIGN_OR_RETURN(const std::vector<CheckedSlice> slices,
                   CheckSlices(what, request.slices(), tensors_, unit));
  RETURN_IF_ERROR(CheckHasStream(what, *stream, slices));

  Frame<SnapshotPart> reply;
  *reply.header.mutable_slices() = request.slices();
  reply.data = replies_.Make(SliceBytes(slices, unit), [&](char* data) {
    for (const CheckedSlice& slice : slices) {
      data = ReadSnapshotSlice(*stream, slice, data);
    }
  });
  return reply;
}

char* ParameterShard::ReadSnapshotSlice(int stream, const CheckedSlice& slice,
                                        char* dst) const {
  const TensorBlocks& tensor = tensors_[slice.tensor];
  if (stream != kCounts) {
    snapshot_.Read(slice.tensor, tensor, stream, slice.offset, slice.length,
                   reinterpret_cast<float*>(dst));
    return dst + slice.length * sizeof(float);
  }
  for (int64_t i = 0; i < slice.length; ++i) {
    const int64_t count =
        snapshot_.Updates(slice.tensor, tensor, slice.offset + i);
    std::memcpy(dst, &count, sizeof(count));
    dst += sizeof(count);
  }
  return dst;
}

absl::StatusOr<EndSnapshotReply> ParameterShard::EndSnapshot(
    const EndSnapshotRequest& request) {
  RETURN_IF_ERROR(CheckFence(request.sender(), request.fence()));
  snapshot_.End(request.snapshot());
  return EndSnapshotReply();
}

}  // namespace muster
