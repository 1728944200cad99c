// How a model changes, and who records that.
#include <utility>

#include "ps_server/shard/shard_model.h"

namespace muster {

void ShardModel::Record(const PartRecorder::Options& options) {
  recorder_ = std::make_unique<PartRecorder>(options);
  if (has_snapshot()) recorder_->BeginSave();
}

std::optional<ProfilePart> ShardModel::EndRecord() {
  if (recorder_ == nullptr) return std::nullopt;
  ProfilePart part = recorder_->Take();
  recorder_.reset();
  return part;
}

void ShardModel::Note(const char* what) {
  if (recorder_ != nullptr) recorder_->Note(what);
}

void ShardModel::CountUpdate() {
  ++version_;
  ++counters_.steps;
  tables_.EndUpdate();
  if (recorder_ == nullptr) return;
  const auto applied = definition_.policy->AppliedSteps();
  // Without rounds a part is its own update.
  if (applied.has_value()) recorder_->BeginUpdate(updates(), *applied);
}

bool ShardModel::Apply(const PushedPart& part) {
  // The update is the step's, which an earlier part may have begun.
  const int64_t updates_before = updates() - (part.begins_step ? 0 : 1);
  for (const CheckedRows& rows : part.rows) {
    tables_.Update(rows, {updates_before, part.rate_factor}, &snapshot_);
  }
  tables_.EndUpdate();
  applier_.ApplyPart(
      part, {&tensors_, definition_.rule.get(), &snapshot_, held_.holder()});
  held_.SetBehind();
  if (recorder_ != nullptr) recorder_->NoteUpdate();
  return part.publish_to != nullptr;
}

void ShardModel::ApplyToBlocks(absl::Span<const CheckedSlice> slices,
                               double rate_factor, BlockGradient gradient) {
  Note("check");
  applier_.ApplyToBlocks(slices, rate_factor, gradient,
                         {&tensors_, definition_.rule.get(), &snapshot_});
  Note("apply");
}

void ShardModel::ApplyRows(const CheckedRows& rows, double rate_factor) {
  tables_.Update(rows, {updates(), rate_factor}, &snapshot_);
}

}  // namespace muster
