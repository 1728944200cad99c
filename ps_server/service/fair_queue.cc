#include "ps_server/service/fair_queue.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace muster {
namespace {

// Looked through at once.
constexpr size_t kManyLanes = 64;

}  // namespace

void FairQueue::Prune() {
  for (auto it = lanes_.begin(); it != lanes_.end();) {
    const bool is_new = it->second.waiting.empty() && it->second.served <= now_;
    it = is_new ? lanes_.erase(it) : std::next(it);
  }
}

uint64_t FairQueue::Push(absl::string_view space, int64_t bytes, Task task) {
  absl::MutexLock lock(&mu_);
  auto it = lanes_.find(space);
  if (it == lanes_.end()) {
    if (lanes_.size() >= kManyLanes) Prune();
    it = lanes_.emplace(std::string(space), Lane()).first;
  }
  Lane& lane = it->second;
  if (lane.waiting.empty()) lane.served = std::max(lane.served, now_);
  lane.waiting.push_back(
      {next_, std::max(bytes, kLeastBytes), std::move(task)});
  return next_++;
}

bool FairQueue::Remove(absl::string_view space, uint64_t number) {
  absl::MutexLock lock(&mu_);
  const auto it = lanes_.find(space);
  if (it == lanes_.end()) return false;
  std::deque<Entry>& waiting = it->second.waiting;
  const auto entry = std::find_if(
      waiting.begin(), waiting.end(),
      [number](const Entry& each) { return each.number == number; });
  if (entry == waiting.end()) return false;
  waiting.erase(entry);
  return true;
}

FairQueue::Task FairQueue::Pop() {
  absl::MutexLock lock(&mu_);
  auto next = lanes_.end();
  for (auto it = lanes_.begin(); it != lanes_.end(); ++it) {
    if (it->second.waiting.empty()) continue;
    if (next == lanes_.end() || it->second.served < next->second.served) {
      next = it;
    }
  }
  if (next == lanes_.end()) return nullptr;
  Lane& lane = next->second;
  Entry entry = std::move(lane.waiting.front());
  lane.waiting.pop_front();
  now_ = lane.served;
  lane.served += entry.bytes;
  return std::move(entry.task);
}

}  // namespace muster
