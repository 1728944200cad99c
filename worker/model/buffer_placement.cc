#include "worker/model/buffer_placement.h"

#include <algorithm>
#include <numeric>

#include "worker/model/memory_planner.h"

namespace muster {
namespace {

// A buffer's life, and the buffer whose memory it uses: at first itself, or the
// one of which it is a part, which then lives for it.
class Lives {
 public:
  explicit Lives(const ExecutionPlan& plan)
      : plan_(plan),
        first_(plan.buffers.size(), -1),
        last_(plan.buffers.size(), -1),
        home_(plan.buffers.size()) {
    std::iota(home_.begin(), home_.end(), 0);
    for (size_t b = 0; b < plan.buffers.size(); ++b) {
      if (plan.buffers[b].whole >= 0) home_[b] = plan.buffers[b].whole;
    }
    const int count = static_cast<int>(plan.instructions.size());
    for (int i = 0; i < count; ++i) {
      for (const BoundOperand& operand : plan.instructions[i].operands) {
        const int home = home_[operand.buffer];
        if (first_[home] < 0) first_[home] = i;
        last_[home] = i;
      }
    }
    for (size_t b = 0; b < plan.buffers.size(); ++b) {
      if (plan.buffers[b].live_at_end) last_[b] = count;
    }
    for (int i = 0; i < count; ++i) MergeInPlace(i);
  }

  bool NeedsMemory(int buffer) const {
    return plan_.buffers[buffer].space == BufferSpace::kArena &&
           first_[buffer] >= 0 && home_[buffer] == buffer;
  }
  int home(int buffer) const { return home_[home_[buffer]]; }
  BufferRequest Request(int buffer) const {
    return {plan_.buffers[buffer].size_bytes, first_[buffer], last_[buffer]};
  }

 private:
  static int FindOperand(const Instruction& instruction, Operand role) {
    for (const BoundOperand& operand : instruction.operands) {
      if (operand.operand == role && operand.index == 0) return operand.buffer;
    }
    return -1;
  }

  // A part is neither: it is smaller than its home, and has no life of its own.
  void MergeInPlace(int i) {
    const Instruction& instruction = plan_.instructions[i];
    if (instruction.is_transfer() || !instruction.primitive->in_place()) return;
    const bool backward = instruction.primitive->takes(Operand::kDiffDst);
    const int src =
        FindOperand(instruction, backward ? Operand::kDiffDst : Operand::kSrc);
    const int dst =
        FindOperand(instruction, backward ? Operand::kDiffSrc : Operand::kDst);
    if (src < 0 || dst < 0) return;
    const int home = home_[src];
    const auto uses = std::count_if(
        instruction.operands.begin(), instruction.operands.end(),
        [&](const BoundOperand& o) { return home_[o.buffer] == home; });
    const PlanBuffer& from = plan_.buffers[home];
    const PlanBuffer& to = plan_.buffers[dst];
    const bool fits = from.space == BufferSpace::kArena &&
                      to.space == BufferSpace::kArena &&
                      to.size_bytes == from.size_bytes;
    // Its last reader is this instruction, which reads it once.
    if (!fits || uses != 1 || last_[home] != i || first_[dst] != i) return;
    home_[dst] = home;
    last_[home] = last_[dst];
  }

  const ExecutionPlan& plan_;
  std::vector<int> first_;
  std::vector<int> last_;
  std::vector<int> home_;
};

// Places the buffers of one device. A buffer and its home lie on one.
void PlaceOnDevice(const ExecutionPlan& plan, const Lives& lives, int device,
                   BufferPlacement* placement) {
  const int count = static_cast<int>(plan.buffers.size());
  std::vector<BufferRequest> requests;
  std::vector<int> request_of(count, -1);
  for (int b = 0; b < count; ++b) {
    if (plan.buffers[b].device != device || !lives.NeedsMemory(b)) continue;
    request_of[b] = static_cast<int>(requests.size());
    requests.push_back(lives.Request(b));
  }
  const MemoryPlan memory = PlanMemory(requests);
  placement->arena_bytes.push_back(memory.total_bytes);
  for (int b = 0; b < count; ++b) {
    const int request = request_of[lives.home(b)];
    if (request < 0) continue;
    placement->offsets[b] =
        memory.offsets[request] + plan.buffers[b].offset_bytes;
  }
}

}  // namespace

BufferPlacement PlaceBuffers(const ExecutionPlan& plan) {
  const Lives lives(plan);
  BufferPlacement placement;
  placement.offsets.resize(plan.buffers.size(), -1);
  for (int device = 0; device < plan.num_arenas(); ++device) {
    PlaceOnDevice(plan, lives, device, &placement);
  }
  return placement;
}

}  // namespace muster
