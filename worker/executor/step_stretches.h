#ifndef WORKER_EXECUTOR_STEP_STRETCHES_H_
#define WORKER_EXECUTOR_STEP_STRETCHES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "worker/executor/step_schedule.h"
#include "worker/model/execution_plan.h"

namespace muster {

// What is worth the end of a stretch. On its way to or from a device it takes
// some 10 to 20 us (PCIe 3 or 4, 16 lanes), which is about what one more launch
// takes, with the events around it. An estimate: not measured on a card. It is
// a block of a ps, too.
inline constexpr int64_t kStretchEndBytes = int64_t{256} << 10;

// Instructions that are put to a device together: what they need comes before
// them, and what they leave goes after them.
struct Stretch {
  // Of the plan: [begin, end).
  size_t begin = 0;
  size_t end = 0;
  // What they are the first to read, in that order.
  std::vector<int> parameters;
  // The loss is there; it is told before any gradient.
  bool makes_loss = false;
  // The first of them adds to the loss.
  bool changes_loss = false;
  // What goes after it: gradients that are final, in that order.
  std::vector<int> gradients;
};

// Divides a plan into stretches, so that pulling, computing and pushing go on
// side by side:
// - no stretch waits for kStretchEndBytes or more of parameters that its first
//   instruction does not read;
// - gradients go as soon as they are so many bytes together, the rest after the
//   last stretch;
// - the loss is made by the last instruction of a stretch, and the first
//   instruction that adds to it begins one.
// `sizes_bytes` are the parameters'. REQUIRES: the plan has an instruction.
std::vector<Stretch> DivideStep(const ExecutionPlan& plan,
                                const StepSchedule& schedule,
                                absl::Span<const int64_t> sizes_bytes);

}  // namespace muster

#endif  // WORKER_EXECUTOR_STEP_STRETCHES_H_
