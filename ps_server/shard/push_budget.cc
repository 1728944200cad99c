#include "ps_server/shard/push_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/rpc/retry_after.h"

namespace muster {
namespace {

// How much one part moves the average.
constexpr double kWeight = 1.0 / 16;
constexpr absl::Duration kShortestPause = absl::Milliseconds(1);
constexpr absl::Duration kLongestPause = absl::Seconds(1);

}  // namespace

absl::Status PushBudget::Admit(int64_t bytes) {
  absl::Duration pause;
  int64_t waiting;
  {
    absl::MutexLock lock(&mu_);
    if (waiting_bytes_ == 0 || waiting_bytes_ + bytes <= max_bytes_) {
      waiting_bytes_ += bytes;
      return absl::OkStatus();
    }
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

void PushBudget::Release(int64_t bytes, absl::Duration busy) {
  absl::MutexLock lock(&mu_);
  waiting_bytes_ -= bytes;
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
