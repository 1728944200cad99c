#include "ps_server/shard/push_budget.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/rpc/retry_after.h"

namespace muster {
namespace {

// How much one part moves the average.
constexpr double kWeight = 1.0 / 16;
constexpr absl::Duration kShortestPause = absl::Milliseconds(1);
constexpr absl::Duration kLongestPause = absl::Seconds(1);

}  // namespace

PushBudget::Share& PushBudget::ShareOf(absl::string_view space) {
  if (space.empty()) return default_;
  const auto it = named_.find(space);
  if (it != named_.end()) return it->second;
  if (named_.size() >= kMaxShares) {
    for (auto old = named_.begin(); old != named_.end();) {
      old = old->second.waiting_bytes == 0 ? named_.erase(old) : std::next(old);
    }
  }
  return named_[std::string(space)];
}

int64_t PushBudget::FairBytes() const {
  int64_t there = default_.is_there() ? 1 : 0;
  for (const auto& [space, share] : named_) there += share.is_there() ? 1 : 0;
  return max_bytes_ / std::max<int64_t>(there, 1);
}

bool PushBudget::HasRoom(int64_t bytes, const Share& share) const {
  if (waiting_bytes_ == 0) return true;
  if (waiting_bytes_ + bytes > max_bytes_) return false;
  return share.waiting_bytes == 0 || share.waiting_bytes + bytes <= FairBytes();
}

absl::Status PushBudget::Admit(int64_t bytes, absl::string_view space) {
  absl::Duration pause;
  int64_t waiting;
  {
    absl::MutexLock lock(&mu_);
    Share& share = ShareOf(space);
    if (HasRoom(bytes, share)) {
      share.waiting_bytes += bytes;
      share.wants_room = false;
      waiting_bytes_ += bytes;
      return absl::OkStatus();
    }
    share.wants_room = true;
    ++refused_;
    waiting = waiting_bytes_;
    // By then half of the queue is gone.
    pause = absl::Seconds(static_cast<double>(waiting) / 2 * seconds_per_byte_);
  }
  pause = std::clamp(pause, kShortestPause, kLongestPause);
  absl::Status status = absl::ResourceExhaustedError(
      absl::StrCat("a part of ", bytes, " bytes finds ", waiting, " of ",
                   max_bytes_, " bytes waiting (--push_budget_mb); again in ",
                   absl::FormatDuration(pause)));
  SetRetryAfter(pause, &status);
  return status;
}

void PushBudget::Release(int64_t bytes, absl::Duration busy,
                         absl::string_view space) {
  absl::MutexLock lock(&mu_);
  waiting_bytes_ -= bytes;
  ShareOf(space).waiting_bytes -= bytes;
  if (waiting_bytes_ == 0) {
    // Whoever wanted room could have had it.
    default_.wants_room = false;
    for (auto& [name, share] : named_) share.wants_room = false;
  }
  if (bytes == 0 || busy == absl::ZeroDuration()) return;
  const double rate = absl::ToDoubleSeconds(busy) / static_cast<double>(bytes);
  seconds_per_byte_ += kWeight * (rate - seconds_per_byte_);
}

int64_t PushBudget::waiting_bytes() const {
  absl::MutexLock lock(&mu_);
  return waiting_bytes_;
}

int64_t PushBudget::refused() const {
  absl::MutexLock lock(&mu_);
  return refused_;
}

}  // namespace muster
