#include "worker/executor/step_segments.h"

#include <utility>

namespace muster {
namespace {

// The first instruction after the one that makes the loss that touches it; the
// number of instructions if there is none.
size_t FindLossChange(const ExecutionPlan& plan, size_t loss_instruction) {
  for (size_t i = loss_instruction + 1; i < plan.instructions.size(); ++i) {
    for (const BoundOperand& bound : plan.instructions[i].operands) {
      if (bound.buffer == plan.loss_buffer) return i;
    }
  }
  return plan.instructions.size();
}

// Takes instructions in order.
class Division {
 public:
  Division(const StepSchedule& schedule, size_t loss_change,
           absl::Span<const int64_t> sizes_bytes)
      : schedule_(schedule),
        loss_change_(loss_change),
        sizes_bytes_(sizes_bytes) {}

  void Add(size_t instruction) {
    const std::vector<int>& read = schedule_.first_used_by[instruction];
    awaited_bytes_ += SumOf(read);
    if (is_ended_ || instruction == loss_change_ ||
        awaited_bytes_ >= kSegmentEndBytes) {
      Begin(instruction);
    }
    Segment& segment = segments_.back();
    segment.end = instruction + 1;
    Append(read, &segment.parameters);
    Append(schedule_.final_after[instruction], &final_);
    segment.makes_loss = instruction == schedule_.loss_instruction;
    const bool delivers = SumOf(final_) >= kSegmentEndBytes;
    if (delivers) Deliver();
    is_ended_ = segment.makes_loss || delivers;
  }

  std::vector<Segment> End() && {
    Deliver();
    return std::move(segments_);
  }

 private:
  static void Append(const std::vector<int>& from, std::vector<int>* to) {
    to->insert(to->end(), from.begin(), from.end());
  }
  int64_t SumOf(const std::vector<int>& parameters) const {
    int64_t bytes = 0;
    for (const int parameter : parameters) bytes += sizes_bytes_[parameter];
    return bytes;
  }
  void Begin(size_t instruction) {
    Segment segment;
    segment.begin = instruction;
    segment.changes_loss = instruction == loss_change_;
    segments_.push_back(segment);
    awaited_bytes_ = 0;
  }
  void Deliver() {
    Append(final_, &segments_.back().gradients);
    final_.clear();
  }

  const StepSchedule& schedule_;
  const size_t loss_change_;
  const absl::Span<const int64_t> sizes_bytes_;
  std::vector<Segment> segments_;
  // Whether the next instruction begins a segment.
  bool is_ended_ = true;
  // The bytes that the last segment waits for, but for its first instruction's.
  int64_t awaited_bytes_ = 0;
  // Gradients that have not gone yet.
  std::vector<int> final_;
};

}  // namespace

std::vector<Segment> DivideStep(const ExecutionPlan& plan,
                                const StepSchedule& schedule,
                                absl::Span<const int64_t> sizes_bytes) {
  Division division(schedule, FindLossChange(plan, schedule.loss_instruction),
                    sizes_bytes);
  for (size_t i = 0; i < plan.instructions.size(); ++i) division.Add(i);
  return std::move(division).End();
}

}  // namespace muster
