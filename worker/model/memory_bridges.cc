#include "worker/model/memory_bridges.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "worker/backend/primitive.h"

namespace muster {
namespace {

constexpr int kHost = ExecutionPlan::kHostMemory;

// The new plan, instruction by instruction of the one that is there.
class Bridges {
 public:
  explicit Bridges(ExecutionPlan* plan)
      : plan_(*plan),
        old_(std::move(plan->instructions)),
        num_old_buffers_(static_cast<int>(plan->buffers.size())) {
    plan_.instructions.clear();
    FindTouches();
    FindFetches();
  }

  void Build() {
    for (size_t i = 0; i < old_.size(); ++i) {
      if (old_[i].is_transfer()) {
        AddTransfer(std::move(old_[i]));
      } else {
        AddPrimitive(std::move(old_[i]));
      }
      if (i == loss_instruction_) KeepForwardLoss();
      for (const auto& [src, dst] : fetches_after_[i]) Fetch(src, dst);
      ReturnGradients(i);
    }
    FetchResults();
  }

 private:
  // The copy of a buffer in the host's memory: a transfer's destination, or
  // one of its own.
  using Fetched = std::pair<int, int>;

  bool IsOnHost(int buffer) const { return plan_.MemoryOf(buffer) == kHost; }
  bool IsWithoutGaps(int buffer) const {
    return plan_.buffers[buffer].runs == 1;
  }

  void FindTouches() {
    first_touch_.assign(num_old_buffers_, old_.size());
    last_touch_.assign(num_old_buffers_, old_.size());
    loss_instruction_ = old_.size();
    for (size_t i = 0; i < old_.size(); ++i) {
      for (const BoundOperand& bound : old_[i].operands) {
        first_touch_[bound.buffer] = std::min(first_touch_[bound.buffer], i);
        last_touch_[bound.buffer] = i;
        if (bound.buffer == plan_.loss_buffer) {
          loss_instruction_ = std::min(loss_instruction_, i);
        }
      }
    }
  }

  // The instruction before `reader` that was the last to write the buffer, its
  // parts, or what it is a part of: each is written when it is first touched.
  size_t MadeBy(int buffer, size_t reader) const {
    size_t made_by = 0;
    for (int other = 0; other < num_old_buffers_; ++other) {
      const bool is_same_memory = other == buffer ||
                                  other == plan_.buffers[buffer].whole ||
                                  plan_.buffers[other].whole == buffer;
      if (is_same_memory && first_touch_[other] < reader) {
        made_by = std::max(made_by, first_touch_[other]);
      }
    }
    return made_by;
  }

  // Finds the instructions after which each buffer can come to the host.
  void FindFetches() {
    fetches_after_.resize(old_.size());
    for (size_t i = 0; i < old_.size(); ++i) {
      if (!old_[i].is_transfer()) continue;
      const int src = old_[i].transferred(Operand::kSrc);
      const int dst = old_[i].transferred(Operand::kDst);
      if (IsOnHost(src)) continue;
      if (IsOnHost(dst) && IsWithoutGaps(dst)) {
        fetches_after_[MadeBy(src, i)].emplace_back(src, dst);
      } else if (staged_.count(src) == 0) {
        staged_[src] = AddBuffer(src, HostArena());
        fetches_after_[MadeBy(src, i)].emplace_back(src, staged_[src]);
      }
    }
  }

  int HostArena() {
    plan_.has_host_arena = true;
    return plan_.num_devices;
  }

  // A buffer of its own for a copy of `like`, without gaps.
  int AddBuffer(int like, int device) {
    PlanBuffer buffer;
    buffer.size_bytes = plan_.buffers[like].size_bytes;
    buffer.device = device;
    plan_.buffers.push_back(buffer);
    return static_cast<int>(plan_.buffers.size()) - 1;
  }

  void Emit(int device, int src, int dst) {
    Instruction transfer;
    transfer.name = "transfer";
    transfer.device = device;
    transfer.operands = {{Operand::kSrc, 0, src}, {Operand::kDst, 0, dst}};
    plan_.instructions.push_back(std::move(transfer));
    NoteGradient(dst);
  }
  void Fetch(int src, int dst) { Emit(plan_.MemoryOf(src), src, dst); }

  // A gradient's place in the host's memory is written.
  void NoteGradient(int buffer) {
    const PlanBuffer& place = plan_.buffers[buffer];
    if (place.space == BufferSpace::kGradient) written_[place.index] = true;
  }

  void AddTransfer(Instruction transfer) {
    int src = transfer.transferred(Operand::kSrc);
    const int dst = transfer.transferred(Operand::kDst);
    if (!IsOnHost(src)) {
      // Fetched when it was made.
      if (IsOnHost(dst) && IsWithoutGaps(dst)) return;
      src = staged_[src];
    }
    if (IsOnHost(dst)) return Emit(transfer.device, src, dst);
    const int device = plan_.MemoryOf(dst);
    if (!IsWithoutGaps(src)) {
      const int without_gaps = AddBuffer(src, HostArena());
      Emit(device, src, without_gaps);
      src = without_gaps;
    }
    Emit(device, src, dst);
  }

  void AddPrimitive(Instruction instruction) {
    const bool is_own = plan_.HasOwnMemory(instruction.device);
    for (BoundOperand& bound : instruction.operands) {
      const BufferSpace space = plan_.buffers[bound.buffer].space;
      if (space == BufferSpace::kArena) continue;
      if (!is_own) {
        NoteGradient(bound.buffer);
      } else if (space == BufferSpace::kGradient) {
        bound.buffer = LocalGradient(bound.buffer, instruction.device);
      } else {
        bound.buffer = LocalCopy(bound.buffer, instruction.device);
      }
    }
    plan_.instructions.push_back(std::move(instruction));
  }

  // On the device, from now on, what nobody writes; of a part the whole.
  int LocalCopy(int buffer, int device) {
    const auto found = local_.find(buffer);
    if (found != local_.end()) return found->second;
    const int whole = plan_.buffers[buffer].whole;
    const int local_whole = whole < 0 ? -1 : LocalCopy(whole, device);
    const int copy = AddBuffer(buffer, device);
    if (whole < 0) {
      Emit(device, buffer, copy);
    } else {
      plan_.buffers[copy].whole = local_whole;
      plan_.buffers[copy].offset_bytes = plan_.buffers[buffer].offset_bytes;
    }
    return local_[buffer] = copy;
  }

  // With what others have written to the gradient so far.
  int LocalGradient(int buffer, int device) {
    const auto found = local_.find(buffer);
    if (found != local_.end()) return found->second;
    const int copy = AddBuffer(buffer, device);
    if (written_[plan_.buffers[buffer].index]) Emit(device, buffer, copy);
    return local_[buffer] = copy;
  }

  // Those whose last instruction is the `i`-th.
  void ReturnGradients(size_t i) {
    for (const auto& [buffer, copy] : local_) {
      if (last_touch_[buffer] == i &&
          plan_.buffers[buffer].space == BufferSpace::kGradient) {
        Fetch(copy, buffer);
      }
    }
  }

  // A buffer of the host's that is a copy of one that stays to the end.
  int Mirror(int buffer) {
    const int mirror = AddBuffer(buffer, HostArena());
    plan_.buffers[mirror].live_at_end = true;
    Emit(plan_.buffers[buffer].device, buffer, mirror);
    return mirror;
  }

  bool IsLossAddedTo() const {
    return last_touch_[plan_.loss_buffer] > loss_instruction_;
  }

  void KeepForwardLoss() {
    if (IsOnHost(plan_.loss_buffer) && !IsLossAddedTo()) return;
    plan_.forward_loss_buffer = Mirror(plan_.loss_buffer);
  }

  void FetchResults() {
    std::map<int, int> mirrors;
    for (int buffer = 0; buffer < num_old_buffers_; ++buffer) {
      if (!plan_.buffers[buffer].live_at_end || IsOnHost(buffer)) continue;
      const bool is_there = buffer == plan_.loss_buffer && !IsLossAddedTo();
      mirrors[buffer] = is_there ? plan_.forward_loss_buffer : Mirror(buffer);
      plan_.buffers[buffer].live_at_end = false;
    }
    const auto move = [&mirrors](int* buffer) {
      const auto found = mirrors.find(*buffer);
      if (found != mirrors.end()) *buffer = found->second;
    };
    for (int* const result :
         {&plan_.loss_buffer, &plan_.correct_buffer, &plan_.outputs_buffer,
          &plan_.input_gradient_buffer}) {
      move(result);
    }
    for (MovingAverage& average : plan_.moving_averages) {
      move(&average.batch_buffer);
    }
  }

  ExecutionPlan& plan_;
  std::vector<Instruction> old_;
  const int num_old_buffers_;
  // By buffer, instructions of old_; as many as there are if there is none.
  std::vector<size_t> first_touch_;
  std::vector<size_t> last_touch_;
  size_t loss_instruction_ = 0;
  // By instruction of old_, what is fetched after it.
  std::vector<std::vector<Fetched>> fetches_after_;
  // By buffer on a device, its copy in the host's arena.
  std::map<int, int> staged_;
  // By buffer in the host's memory, its copy on the device that touches it.
  std::map<int, int> local_;
  // By parameter, whether its gradient's place was written.
  std::map<int, bool> written_;
};

}  // namespace

void BridgeMemories(const std::vector<bool>& has_own_memory,
                    ExecutionPlan* plan) {
  plan->has_own_memory = has_own_memory;
  if (absl::c_count(has_own_memory, true) == 0) plan->has_own_memory.clear();
  Bridges(plan).Build();
}

}  // namespace muster
