#include "worker/executor/lane_schedule.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "worker/backend/primitive.h"

namespace muster {
namespace {

// Memory that an instruction touches.
struct Touch {
  // A device's arena; a parameter -1, -3, ..., a gradient -2, -4, ...
  int memory = 0;
  int64_t begin = 0;
  int64_t end = 0;
  bool writes = false;
  // A part of each row: so many bytes from `begin` on, and again after each
  // `stride`; 0: all up to `end`.
  int64_t run = 0;
  int64_t stride = 0;
};

// Whether they are different columns of the same rows.
bool AreColumnsApart(const Touch& a, const Touch& b) {
  return a.stride > 0 && a.stride == b.stride &&
         (a.begin + a.run <= b.begin || b.begin + b.run <= a.begin);
}

bool AreInConflict(const Touch& a, const Touch& b) {
  return a.memory == b.memory && (a.writes || b.writes) && a.begin < b.end &&
         b.begin < a.end && !AreColumnsApart(a, b);
}

bool AreInConflict(const std::vector<Touch>& a, const std::vector<Touch>& b) {
  return std::any_of(a.begin(), a.end(), [&b](const Touch& touch) {
    return std::any_of(b.begin(), b.end(), [&touch](const Touch& other) {
      return AreInConflict(touch, other);
    });
  });
}

// The roles in which an instruction writes to a buffer that another one has
// written: a penalty's.
bool IsAddedTo(Operand operand) {
  return operand == Operand::kLoss || operand == Operand::kDiffWeights ||
         operand == Operand::kDiffBias;
}

// Finds what instructions touch, in the plan's order.
class TouchFinder {
 public:
  TouchFinder(const ExecutionPlan& plan, const BufferPlacement& placement)
      : plan_(plan),
        placement_(placement),
        is_written_(plan.buffers.size(), false) {}

  std::vector<Touch> Next(const Instruction& instruction) {
    std::vector<Touch> touches;
    for (const BoundOperand& bound : instruction.operands) {
      const PlanBuffer& buffer = plan_.buffers[bound.buffer];
      Touch touch;
      touch.writes = IsFirst(bound.buffer) || IsAddedTo(bound.operand);
      switch (buffer.space) {
        case BufferSpace::kArena:
          touch.memory = buffer.device;
          touch.begin = placement_.offsets[bound.buffer];
          touch.end = touch.begin + buffer.size_bytes;
          break;
        case BufferSpace::kParameter:
          // All of it is there when the gate has been asked for it.
          touch.memory = -1 - 2 * buffer.index;
          touch.end = 1;
          touch.writes = asked_.insert(buffer.index).second;
          break;
        case BufferSpace::kGradient:
          touch.memory = -2 - 2 * buffer.index;
          touch.begin = buffer.offset_bytes;
          touch.end = buffer.end_bytes();
          if (buffer.runs == 1) break;
          touch.run = buffer.run_bytes();
          touch.stride = buffer.stride_bytes;
          break;
        case BufferSpace::kInput:
        case BufferSpace::kLabels:
          continue;  // Nobody writes the batch.
      }
      touches.push_back(touch);
    }
    return touches;
  }

 private:
  // Whether nobody has touched it yet: who does so first writes it. Whoever
  // writes a whole writes its parts.
  bool IsFirst(int buffer) {
    const int whole = plan_.buffers[buffer].whole;
    const bool is_first =
        !is_written_[buffer] && !(whole >= 0 && is_written_[whole]);
    is_written_[buffer] = true;
    return is_first;
  }

  const ExecutionPlan& plan_;
  const BufferPlacement& placement_;
  // By buffer.
  std::vector<bool> is_written_;
  std::set<int> asked_;
};

}  // namespace

LaneSchedule ScheduleLanes(const ExecutionPlan& plan,
                           const BufferPlacement& placement) {
  TouchFinder finder(plan, placement);
  std::vector<std::vector<Touch>> touches;
  const size_t num_lanes = static_cast<size_t>(plan.num_devices);
  LaneSchedule schedule;
  schedule.lanes.resize(num_lanes);
  schedule.waits.resize(plan.instructions.size());
  // By lane and other lane, how many of the plan's instructions the first one
  // knows to be over on the other.
  std::vector<std::vector<size_t>> known(num_lanes,
                                         std::vector<size_t>(num_lanes, 0));
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    touches.push_back(finder.Next(plan.instructions[i]));
    const int lane = plan.instructions[i].device;
    schedule.lanes[lane].push_back(i);
    for (size_t j = i; j-- > 0;) {
      const int other = plan.instructions[j].device;
      if (other == lane || j < known[lane][other] ||
          !AreInConflict(touches[i], touches[j])) {
        continue;
      }
      known[lane][other] = j + 1;
      schedule.waits[i].push_back({other, j});
    }
  }
  return schedule;
}

}  // namespace muster
