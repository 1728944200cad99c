#include "worker/checkpoint/checkpoint_queue.h"

#include <utility>

namespace muster {

std::vector<int64_t> CheckpointQueue::Update(
    absl::Span<const FoundCheckpoint> found) {
  std::map<int64_t, uint32_t> waiting;
  std::map<int64_t, uint32_t> settled;
  for (const FoundCheckpoint& checkpoint : found) {
    const auto known = settled_.find(checkpoint.global_step);
    const bool is_settled =
        known != settled_.end() && known->second == checkpoint.stamp;
    (is_settled ? settled : waiting)[checkpoint.global_step] = checkpoint.stamp;
  }
  std::vector<int64_t> gone;
  for (const auto& [step, stamp] : waiting_) {
    if (waiting.count(step) == 0) gone.push_back(step);
  }
  waiting_ = std::move(waiting);
  settled_ = std::move(settled);
  return gone;
}

std::optional<FoundCheckpoint> CheckpointQueue::Next() const {
  if (waiting_.empty()) return std::nullopt;
  const auto& [step, stamp] = *waiting_.begin();
  return FoundCheckpoint{step, stamp};
}

void CheckpointQueue::Settle(const FoundCheckpoint& checkpoint) {
  waiting_.erase(checkpoint.global_step);
  settled_[checkpoint.global_step] = checkpoint.stamp;
}

}  // namespace muster
