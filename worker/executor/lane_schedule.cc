#include "worker/executor/lane_schedule.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <utility>

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
      const bool is_first = IsFirst(bound.buffer);
      touch.writes = instruction.is_transfer()
                         ? bound.operand != Operand::kSrc
                         : is_first || IsAddedTo(bound.operand);
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
        case BufferSpace::kWeights:
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

// Keeps how far each lane, and each of its streams, knows the others to be.
class Scheduler {
 public:
  Scheduler(const ExecutionPlan& plan, const BufferPlacement& placement)
      : plan_(plan),
        finder_(plan, placement),
        known_(plan.num_devices, std::vector<size_t>(plan.num_devices, 0)),
        known_streams_(plan.num_devices) {
    schedule_.lanes.resize(plan.num_devices);
  }

  LaneSchedule Run() && {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) Add(i);
    return std::move(schedule_);
  }

 private:
  // The streams, and the lane's thread.
  static constexpr size_t kThread = 3;
  using Known = std::array<size_t, kThread + 1>;

  void Add(size_t i) {
    const Instruction& instruction = plan_.instructions[i];
    const std::optional<DeviceStreams::Stream> stream =
        StreamOf(plan_, instruction);
    const size_t place = stream ? static_cast<size_t>(*stream) : kThread;
    touches_.push_back(finder_.Next(instruction));
    places_.push_back(place);
    schedule_.lanes[instruction.device].push_back(i);
    schedule_.waits.emplace_back();
    schedule_.stream_waits.emplace_back();
    schedule_.ends_late.push_back(stream &&
                                  *stream != DeviceStreams::Stream::kCompute);
    for (size_t j = i; j-- > 0;) FindWait(i, j);
  }

  void FindWait(size_t i, size_t j) {
    const int lane = plan_.instructions[i].device;
    const int other = plan_.instructions[j].device;
    const bool is_own = other == lane;
    if (is_own && (places_[j] == places_[i] || places_[j] == kThread)) return;
    size_t& known = is_own ? known_streams_[lane][places_[i]][places_[j]]
                           : known_[lane][other];
    if (j < known || !AreInConflict(touches_[i], touches_[j])) return;
    known = j + 1;
    if (is_own) {
      schedule_.stream_waits[i].push_back(j);
    } else {
      schedule_.waits[i].push_back({other, j});
    }
  }

  const ExecutionPlan& plan_;
  TouchFinder finder_;
  // By instruction.
  std::vector<std::vector<Touch>> touches_;
  std::vector<size_t> places_;
  // By lane and other lane, how many of the plan's instructions the first one
  // knows to be over on the other; by lane, the same of its streams.
  std::vector<std::vector<size_t>> known_;
  std::vector<std::array<Known, kThread + 1>> known_streams_;
  LaneSchedule schedule_;
};

}  // namespace

std::optional<DeviceStreams::Stream> StreamOf(const ExecutionPlan& plan,
                                              const Instruction& instruction) {
  const auto is_own = [&plan](int buffer) {
    return plan.MemoryOf(buffer) != ExecutionPlan::kHostMemory;
  };
  if (!plan.HasOwnMemory(instruction.device)) return std::nullopt;
  if (!instruction.is_transfer()) return DeviceStreams::Stream::kCompute;
  if (is_own(instruction.transferred(Operand::kDst))) {
    return DeviceStreams::Stream::kToDevice;
  }
  if (is_own(instruction.transferred(Operand::kSrc))) {
    return DeviceStreams::Stream::kToHost;
  }
  return std::nullopt;
}

LaneSchedule ScheduleLanes(const ExecutionPlan& plan,
                           const BufferPlacement& placement) {
  return Scheduler(plan, placement).Run();
}

}  // namespace muster
