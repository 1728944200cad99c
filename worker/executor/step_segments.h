#ifndef WORKER_EXECUTOR_STEP_SEGMENTS_H_
#define WORKER_EXECUTOR_STEP_SEGMENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "worker/executor/step_schedule.h"
#include "worker/model/execution_plan.h"

namespace muster {

// The bytes that are worth the end of a segment. On their way to or from a
// device they take some 10 to 20 us (PCIe 3 or 4, 16 lanes), which is about
// what one more launch takes, with the events around it. An estimate: not
// measured on a card. They are a block of a ps, too.
inline constexpr int64_t kSegmentEndBytes = int64_t{256} << 10;

// Instructions that are put to a device together: what they need comes before
// them, and what they leave goes after them.
struct Segment {
  // [begin, end) of the plan's instructions.
  size_t begin = 0;
  size_t end = 0;
  // Parameters that they are the first to read, in that order.
  std::vector<int> parameters;
  // The loss is there; it is told before any gradient.
  bool makes_loss = false;
  // The first of them adds to the loss.
  bool changes_loss = false;
  // Gradients that are final after them, and go, in that order.
  std::vector<int> gradients;
};

// Divides a plan into segments, so that pulling, computing and pushing go on
// side by side:
// - no segment waits for kSegmentEndBytes or more of parameters that its first
//   instruction does not read;
// - gradients go as soon as they are so many bytes together, the rest after the
//   last segment;
// - the loss is made by the last instruction of a segment, and the first
//   instruction that adds to it begins one.
// `sizes_bytes` are the parameters'. REQUIRES: the plan has an instruction.
std::vector<Segment> DivideStep(const ExecutionPlan& plan,
                                const StepSchedule& schedule,
                                absl::Span<const int64_t> sizes_bytes);

}  // namespace muster

#endif  // WORKER_EXECUTOR_STEP_SEGMENTS_H_
