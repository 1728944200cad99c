#include "common/tls/refusal_lines.h"

#include <utility>

namespace muster {

RefusalLines::RefusalLines(Reporter reporter, const Clock* clock)
    : reporter_(std::move(reporter)), clock_(clock) {}

void RefusalLines::Say(absl::string_view line) {
  {
    absl::MutexLock lock(&mu_);
    const absl::Time now = clock_->Now();
    if (now >= window_ends_) {
      said_.clear();
      window_ends_ = now + kWindow;
    }
    if (said_.size() >= kMost || !said_.emplace(line).second) return;
  }
  reporter_.Warning(line);
}

}  // namespace muster
