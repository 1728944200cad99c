#include "common/base/clock.h"

#include <chrono>

namespace muster {

absl::Time MonotonicClock::Now() const {
  return absl::UnixEpoch() +
         absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace muster
