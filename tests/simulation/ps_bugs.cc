#include "tests/simulation/ps_bugs.h"

#include <algorithm>
#include <utility>

#include "common/rpc/protocol.h"

namespace muster {

void PsBugs::Forge(Fence* fence) const {
  const int64_t epoch = shard_->State().model_epoch();
  if (bug_ == Bug::kNoFence) {
    fence->set_ps_incarnation(incarnation_);
    fence->set_model_epoch(epoch);
  }
  if (fence->ps_incarnation() == ShownIncarnation()) {
    fence->set_ps_incarnation(incarnation_);
  }
  if (shown_epoch_ == 0) return;
  fence->set_model_epoch(fence->model_epoch() == shown_epoch_ ? epoch : -1);
}

void PsBugs::Forge(StepToken* token) {
  open_round_ = std::max(open_round_, token->round());
  if (bug_ == Bug::kCountedTwice && token->chosen_size() > 0) {
    const ChosenStep first = token->chosen(0);
    *token->add_chosen() = first;
  }
}

void PsBugs::Forge(PushPart* header) {
  if (bug_ == Bug::kBlockMisplaced && header->slices_size() == 1) {
    Misplace(header->mutable_slices(0));
  }
  if (bug_ == Bug::kLateApplied && header->round() > 0) {
    header->set_round(std::max(header->round(), open_round_));
  }
  if (bug_ == Bug::kNoFence) {
    header->set_pulled_version(
        std::min(header->pulled_version(), shard_->State().version()));
  }
  if (bug_ != Bug::kNoDuplicateCheck) return;
  header->set_step(++forged_step_);
  header->set_part(0);
  header->set_parts(1);
}

bool PsBugs::TakesForDuplicate(const PushPart& header) {
  // Whoever wants values would find out at once.
  if (bug_ != Bug::kMarksWithoutNamespace || header.wants_values()) {
    return false;
  }
  const std::string& space = header.sender().namespace_();
  const auto [first, is_new] = first_of_.try_emplace(
      {KeyOf(header.sender()), header.step(), header.part()}, space);
  return first->second != space;
}

void PsBugs::See(const DefineRequest& define) {
  blocks_.clear();
  state_tensors_.clear();
  for (const TensorDef& tensor : define.tensors()) {
    if (tensor.kind() == STATE) state_tensors_.insert(tensor.name());
    const Extent& extent = tensor.extent();
    const int64_t last = extent.begin() + extent.length() - kBlockElements;
    for (int64_t at = extent.begin(); at <= last; at += kBlockElements) {
      blocks_[tensor.name()].insert(at);
    }
  }
}

void PsBugs::Misplace(TensorSlice* slice) const {
  const auto blocks = blocks_.find(slice->tensor());
  if (blocks == blocks_.end() || slice->length() != kBlockElements) return;
  auto next = blocks->second.upper_bound(slice->offset());
  if (next == blocks->second.end()) next = blocks->second.begin();
  slice->set_offset(*next);
}

void PsBugs::Forge(Frame<PushPart>* push) {
  Forge(&push->header);
  if (bug_ != Bug::kOlderPushAgain) return;
  absl::Cord& newest =
      newest_push_[{push->header.sender().task().index(), push->header.part()}];
  if (newest.size() == push->data.size()) {
    std::swap(newest, push->data);
  } else {
    newest = push->data;
  }
}

void PsBugs::Forge(Frame<LoadPart>* load) const {
  if (bug_ == Bug::kStateNotRestored) {
    int64_t at = 0;
    std::string data(load->data);
    for (const TensorSlice& slice : load->header.slices()) {
      const auto bytes = slice.length() * static_cast<int64_t>(sizeof(float));
      if (state_tensors_.count(slice.tensor()) > 0) {
        data.replace(at, bytes, bytes, '\0');
      }
      at += bytes;
    }
    load->data = absl::Cord(data);
  }
  if (bug_ != Bug::kPiecesNotRestored) return;
  if (load->header.slices(0).offset() == 0) return;
  load->data = absl::Cord(std::string(load->data.size(), '\0'));
}

void PsBugs::Forge(const Coordinator& coordinator, StepRequest* request) {
  if (bug_ == Bug::kAbandonedStepCounted) request->set_abandoned(false);
  if (bug_ == Bug::kStepCountedTwice && request->step() > 0 &&
      !request->abandoned()) {
    request->set_step(++forged_steps_[KeyOf(request->sender())]);
  }
  if (bug_ == Bug::kLateApplied && request->round() > 0) {
    request->set_round(std::max(request->round(), coordinator.State().round()));
    request->set_late(false);
  }
}

void PsBugs::ForgeLease(const Coordinator& coordinator, Sender* sender) const {
  if (bug_ != Bug::kLeaseIgnored) return;
  const JobState state = coordinator.State();
  if (state.has_chief()) *sender = state.chief();
}

bool PsBugs::KeepOldModel(int64_t new_epoch) {
  if (bug_ != Bug::kMixedEpochs || shard_->phase() != READY ||
      new_epoch <= shard_->State().model_epoch()) {
    return false;
  }
  shown_epoch_ = new_epoch;
  return true;
}

ShardState PsBugs::Shown(ShardState state) const {
  if (shown_epoch_ != 0) state.set_model_epoch(shown_epoch_);
  return state;
}

uint64_t PsBugs::ShownIncarnation() const {
  return bug_ == Bug::kRestartUnnoticed ? 1 + task_ : incarnation_;
}

absl::StatusOr<Frame<SnapshotPart>> PsBugs::ReadValuesOfNow(
    const ReadSnapshotRequest& request) {
  PullRequest pull;
  *pull.mutable_sender() = request.sender();
  *pull.mutable_fence() = request.fence();
  *pull.mutable_slices() = request.slices();
  absl::StatusOr<Frame<PullReply>> values = shard_->Pull(pull);
  if (!values.ok()) return values.status();
  Frame<SnapshotPart> reply;
  *reply.header.mutable_slices() = request.slices();
  reply.data = std::move(values->data);
  return reply;
}

}  // namespace muster
