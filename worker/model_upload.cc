#include "worker/model_upload.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/protocol.h"
#include "common/tensor/dtype.h"
#include "worker/blocking_call.h"

namespace muster {
namespace {

// A part of 1 MiB at 1 MiB/s, ten times over.
constexpr absl::Duration kCallTimeout = absl::Seconds(10);

}  // namespace

int64_t ElementsOf(const TensorDef& tensor, absl::string_view slot) {
  int64_t elements = 1;
  for (const int64_t dim : tensor.shape()) elements *= dim;
  if (slot != kCountSlot) return elements;
  return (elements + kBlockElements - 1) / kBlockElements;
}

int64_t ElementBytes(absl::string_view slot) {
  return SizeOf(slot == kCountSlot ? INT64 : FLOAT32);
}

ModelUpload::ModelUpload(const Clock* clock,
                         absl::Span<ParameterLink* const> shards,
                         const Sender& sender, const PlacedModel* model,
                         const LoadModel& epoch)
    : clock_(clock),
      shards_(shards),
      sender_(sender),
      model_(model),
      epoch_(epoch) {}

Fence ModelUpload::FenceOf(int ps_task) const {
  Fence fence;
  fence.set_ps_incarnation(epoch_.ps_incarnations[ps_task]);
  fence.set_model_epoch(epoch_.model_epoch);
  return fence;
}

absl::Time ModelUpload::Deadline() const {
  return clock_->Now() + kCallTimeout;
}

absl::StatusOr<std::vector<std::string>> ModelUpload::Define() {
  std::vector<std::string> slots;
  for (size_t ps_task = 0; ps_task < shards_.size(); ++ps_task) {
    DefineRequest request;
    *request.mutable_sender() = sender_;
    request.set_ps_incarnation(epoch_.ps_incarnations[ps_task]);
    request.set_model_epoch(epoch_.model_epoch);
    request.set_fingerprint(model_->fingerprint);
    *request.mutable_optimizer() = model_->optimizer;
    *request.mutable_replication() = model_->replication;
    for (size_t i = 0; i < model_->tensors.size(); ++i) {
      if (model_->placement[i] != static_cast<int>(ps_task)) continue;
      *request.add_tensors() = model_->tensors[i];
    }
    ASSIGN_OR_RETURN(
        const DefineReply reply, BlockingCall<DefineReply>([&](auto done) {
          shards_[ps_task]->Define(request, Deadline(), std::move(done));
        }));
    slots.assign(reply.slots().begin(), reply.slots().end());
  }
  return slots;
}

absl::Status ModelUpload::Load(int tensor, const std::string& slot,
                               const Read& read) {
  const TensorDef& def = model_->tensors[tensor];
  const int ps_task = model_->placement[tensor];
  const int64_t elements = ElementsOf(def, slot);
  const int64_t element_bytes = ElementBytes(slot);
  const int64_t part_elements = kMaxPartBytes / element_bytes;
  for (int64_t offset = 0; offset < elements; offset += part_elements) {
    const int64_t count = std::min(part_elements, elements - offset);
    std::string bytes(count * element_bytes, '\0');
    RETURN_IF_ERROR(read(offset, count, &bytes[0]));
    Frame<LoadPart> frame;
    *frame.header.mutable_sender() = sender_;
    *frame.header.mutable_fence() = FenceOf(ps_task);
    frame.header.set_slot(slot);
    TensorSlice* slice = frame.header.add_slices();
    slice->set_tensor(def.name());
    slice->set_offset(offset);
    slice->set_length(count);
    frame.data = absl::Cord(std::move(bytes));
    RETURN_IF_ERROR(BlockingCall<LoadReply>([&](auto done) {
                      shards_[ps_task]->Load(std::move(frame), Deadline(),
                                             std::move(done));
                    }).status());
  }
  return absl::OkStatus();
}

absl::Status ModelUpload::Seal() {
  for (size_t ps_task = 0; ps_task < shards_.size(); ++ps_task) {
    SealRequest request;
    *request.mutable_sender() = sender_;
    *request.mutable_fence() = FenceOf(static_cast<int>(ps_task));
    RETURN_IF_ERROR(BlockingCall<SealReply>([&](auto done) {
                      shards_[ps_task]->Seal(request, Deadline(),
                                             std::move(done));
                    }).status());
  }
  return absl::OkStatus();
}

}  // namespace muster
