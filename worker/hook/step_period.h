#ifndef WORKER_HOOK_STEP_PERIOD_H_
#define WORKER_HOOK_STEP_PERIOD_H_

#include <cstdint>

namespace muster {

// A period of `every` global steps: says when a multiple is reached. It counts
// multiples passed, not remainders: one process sees only some of the steps.
class StepPeriod {
 public:
  // 0: never.
  explicit StepPeriod(int64_t every) : every_(every) {}

  // Counts from here on.
  void Start(int64_t global_step) { last_step_ = global_step; }

  // The global step of Start.
  int64_t last_step() const { return last_step_; }

  // Has one been passed since Start?
  bool IsOver(int64_t global_step) const {
    return every_ > 0 && global_step / every_ > last_step_ / every_;
  }

 private:
  int64_t every_;
  int64_t last_step_ = 0;
};

}  // namespace muster

#endif  // WORKER_HOOK_STEP_PERIOD_H_
