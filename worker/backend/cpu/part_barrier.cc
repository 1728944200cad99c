#include "worker/backend/cpu/part_barrier.h"

#include "common/base/spin_until.h"

namespace muster {

void PartBarrier::Await() {
  // It cannot rise before this part has arrived.
  const int64_t before = passed_.load();
  const auto has_passed = [&] { return passed_.load() != before; };
  {
    absl::MutexLock lock(&mu_);
    if (++arrived_ == parts_) {
      arrived_ = 0;
      passed_.store(before + 1);
      return;
    }
  }
  if (SpinUntil(has_passed)) return;
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&has_passed));
}

}  // namespace muster
