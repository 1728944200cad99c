#ifndef WORKER_TOWER_PROFILED_STEPS_H_
#define WORKER_TOWER_PROFILED_STEPS_H_

#include <cstdint>

namespace muster {

// Which steps of this process a profile is of: known before they are computed,
// so that only those are timed on a device.
struct ProfiledSteps {
  // Counted from 1, at least that.
  int64_t first = 1;
  // 0: no profile.
  int64_t count = 0;

  bool Has(int64_t step) const { return step >= first && !AreBefore(step); }
  // Whether all of them are.
  bool AreBefore(int64_t step) const { return step - first >= count; }
};

}  // namespace muster

#endif  // WORKER_TOWER_PROFILED_STEPS_H_
