#include "common/rpc/backoff.h"

#include <algorithm>

namespace muster {

absl::Duration Backoff::Next() {
  const absl::Duration limit = std::min(limit_, options_.max);
  limit_ = std::min(2 * limit, options_.max);
  // 53 random bits as a fraction in [0, 1): the same on every library, unlike
  // std::uniform_real_distribution.
  const double fraction = static_cast<double>(random_() >> 11) * 0x1p-53;
  return std::max(options_.min, fraction * limit);
}

}  // namespace muster
