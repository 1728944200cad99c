#include "worker/model_snapshot.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/protocol.h"
#include "worker/blocking_call.h"

namespace muster {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(10);

}  // namespace

absl::StatusOr<std::unique_ptr<ModelSnapshot>> ModelSnapshot::Begin(
    const Clock* clock, absl::Span<ParameterLink* const> shards,
    const Sender& sender, const PlacedModel* model, const EnterEpoch& epoch) {
  auto snapshot =
      absl::WrapUnique(new ModelSnapshot(clock, shards, sender, model, epoch));
  for (size_t ps_task = 0; ps_task < shards.size(); ++ps_task) {
    BeginSnapshotRequest request;
    *request.mutable_sender() = sender;
    *request.mutable_fence() = snapshot->FenceOf(static_cast<int>(ps_task));
    ASSIGN_OR_RETURN(BeginSnapshotReply cut,
                     BlockingCall<BeginSnapshotReply>([&](auto done) {
                       shards[ps_task]->BeginSnapshot(
                           request, clock->Now() + kCallTimeout,
                           std::move(done));
                     }));
    snapshot->cuts_.push_back(std::move(cut));
  }
  return snapshot;
}

ModelSnapshot::ModelSnapshot(const Clock* clock,
                             absl::Span<ParameterLink* const> shards,
                             const Sender& sender, const PlacedModel* model,
                             const EnterEpoch& epoch)
    : clock_(clock),
      shards_(shards),
      sender_(sender),
      model_(model),
      epoch_(epoch) {}

ModelSnapshot::~ModelSnapshot() {
  for (size_t ps_task = 0; ps_task < cuts_.size(); ++ps_task) {
    EndSnapshotRequest request;
    *request.mutable_sender() = sender_;
    *request.mutable_fence() = FenceOf(static_cast<int>(ps_task));
    request.set_snapshot(cuts_[ps_task].snapshot());
    // A shard that is gone has no snapshot either, and the next Begin ends
    // this one.
    shards_[ps_task]->EndSnapshot(request, clock_->Now() + kCallTimeout,
                                  [](const auto&) {});
  }
}

Fence ModelSnapshot::FenceOf(int ps_task) const {
  Fence fence;
  fence.set_ps_incarnation(epoch_.ps_incarnations[ps_task]);
  fence.set_model_epoch(epoch_.model_epoch);
  return fence;
}

absl::Status ModelSnapshot::Read(int tensor, const std::string& slot,
                                 const Write& write) const {
  const TensorDef& def = model_->tensors[tensor];
  const int ps_task = model_->placement[tensor];
  const int64_t elements = ElementsOf(def, slot);
  const int64_t element_bytes = ElementBytes(slot);
  const int64_t part_elements = kMaxPartBytes / element_bytes;
  for (int64_t offset = 0; offset < elements; offset += part_elements) {
    const int64_t count = std::min(part_elements, elements - offset);
    ReadSnapshotRequest request;
    *request.mutable_sender() = sender_;
    *request.mutable_fence() = FenceOf(ps_task);
    request.set_snapshot(cuts_[ps_task].snapshot());
    request.set_slot(slot);
    TensorSlice* slice = request.add_slices();
    slice->set_tensor(def.name());
    slice->set_offset(offset);
    slice->set_length(count);
    ASSIGN_OR_RETURN(const Frame<SnapshotPart> part,
                     BlockingCall<Frame<SnapshotPart>>([&](auto done) {
                       shards_[ps_task]->ReadSnapshot(
                           request, clock_->Now() + kCallTimeout,
                           std::move(done));
                     }));
    if (static_cast<int64_t>(part.data.size()) != count * element_bytes) {
      return absl::InternalError(absl::StrCat(
          "snapshot of '", def.name(), "': wanted ", count * element_bytes,
          " bytes, got ", part.data.size()));
    }
    RETURN_IF_ERROR(write(part.data));
  }
  return absl::OkStatus();
}

}  // namespace muster
