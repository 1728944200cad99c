#include "common/checkpoint/retention.h"

#include <algorithm>
#include <cmath>

namespace muster {
namespace {

constexpr double kSecondsPerHour = 3600;
constexpr int kLeastKept = 2;

}  // namespace

std::vector<int64_t> CheckpointsToRemove(
    absl::Span<const SavedCheckpoint> newest_first, const Retention& retention,
    std::optional<int64_t> best_step) {
  const auto kept = static_cast<size_t>(std::max(retention.keep, kLeastKept));
  const double period_s = retention.keep_every_hours * kSecondsPerHour;
  std::vector<int64_t> removed;
  // In the order in which they were saved.
  double newest_period = 0;
  for (size_t i = newest_first.size(); i > 0; --i) {
    const SavedCheckpoint& checkpoint = newest_first[i - 1];
    const double period =
        period_s > 0 ? std::floor(checkpoint.trained_s / period_s) : 0;
    const bool is_first = period > newest_period;
    newest_period = std::max(newest_period, period);
    if (i <= kept || is_first || checkpoint.global_step == best_step) continue;
    removed.push_back(checkpoint.global_step);
  }
  return removed;
}

}  // namespace muster
