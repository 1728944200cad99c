#ifndef WORKER_MODEL_EXECUTION_PLAN_H_
#define WORKER_MODEL_EXECUTION_PLAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/backend/element_runs.h"
#include "worker/backend/memory_layout.h"
#include "worker/backend/primitive.h"

namespace muster {

// Whose memory a buffer is.
enum class BufferSpace {
  kArena,      // the model's arena, at an offset that the planner chooses
  kInput,      // the batch's examples
  kLabels,     // the batch's labels
  kWeights,    // the batch's weights of rows
  kParameter,  // the canonical values of parameter `index`
  kGradient,   // the canonical gradient of parameter `index`
};

struct PlanBuffer {
  BufferSpace space = BufferSpace::kArena;
  // The tensor's number, for kParameter and kGradient.
  int index = 0;
  // The buffer of which this one is a part, if that is in an arena; else -1.
  int whole = -1;
  // The place of a part: in its tensor, in the batch, or in `whole`.
  int64_t offset_bytes = 0;
  int64_t size_bytes = 0;
  // A part of each row of its tensor, which transfers alone take: so many equal
  // runs, each `stride_bytes` after the one before it.
  int64_t runs = 1;
  int64_t stride_bytes = 0;
  // The device that reads and writes it.
  int device = 0;
  // Still read after the last instruction.
  bool live_at_end = false;

  int64_t run_bytes() const { return size_bytes / runs; }
  // Behind its last byte, counted as the offset is.
  int64_t end_bytes() const {
    return offset_bytes + (runs - 1) * stride_bytes + run_bytes();
  }
};

// A buffer seen with a layout.
struct PlanTensor {
  int buffer = -1;
  MemoryLayout layout;
};

// Operand `index` of role `operand` is `buffer`.
struct BoundOperand {
  Operand operand = Operand::kSrc;
  int index = 0;
  int buffer = -1;
};

struct Instruction {
  // The layer's name.
  std::string name;
  // Null: a transfer, which copies kSrc as it is to kDst on `device`, that of
  // one of the two. All other buffers of an instruction lie on its device.
  std::unique_ptr<Primitive> primitive;
  std::vector<BoundOperand> operands;
  int device = 0;
  // Dropout: gets a seed of its own every step.
  bool is_seeded = false;
  // Operands::elements.
  ElementRuns elements;

  bool is_transfer() const { return primitive == nullptr; }
  // The buffer of a transfer in this role.
  int transferred(Operand operand) const {
    return operands[operand == Operand::kSrc ? 0 : 1].buffer;
  }
};

// After a training step gradient(moving), 0 at first, becomes
//   kept * gradient(moving) + (1 - momentum) * scale * batch
// for each reader of the averages in the order of the layers. Added to a value
// that decays by 1 minus the product of their momentums (TensorDef.decay), it
// is what they would have made of the value, one after another.
struct MovingAverage {
  int batch_buffer = -1;
  int parameter = -1;
  // The values that it is of: `count`, from the `begin`-th on.
  int64_t begin = 0;
  int64_t count = 0;
  double momentum = 0;
  // The momentum; 1 after the first of a reader's micro-batches, which move the
  // average together.
  double kept = 0;
  // The factor of the batch's value: m / (m - 1) for a variance of m values,
  // divided by the number of micro-batches.
  double scale = 1;
};

// A model as instructions in order, each on buffers. Each arena buffer is
// written by one instruction, before its readers.
struct ExecutionPlan {
  // Devices are numbered from 0.
  int num_devices = 1;
  // By device, whether its arena is memory of its own; all other memory is the
  // host's. Empty: no device has any.
  std::vector<bool> has_own_memory;
  // Whether there is one more arena, device `num_devices`: the host's, for what
  // is copied between devices and for what it reads itself.
  bool has_host_arena = false;
  std::vector<PlanBuffer> buffers;
  std::vector<Instruction> instructions;
  std::vector<MovingAverage> moving_averages;
  // The labels that the loss reads: int32 [N], or float32 [N, outputs].
  MemoryLayout labels;
  // And the weights of rows: float32 [N]; of no bytes: none.
  MemoryLayout weights;
  // float64 [1], and int64 [1] if the loss counts.
  int loss_buffer = -1;
  int correct_buffer = -1;
  // Where the host finds the loss when it is made, without the penalties that
  // are added later; -1: in loss_buffer.
  int forward_loss_buffer = -1;
  // Inference: what the loss reads, row-major [N, outputs].
  int outputs_buffer = -1;
  // Row-major, if it was asked for.
  int input_gradient_buffer = -1;

  // Whether its devices run side by side, or one copies parts of a layer: else
  // a device with memory of its own has an executor of its own.
  bool has_lanes() const {
    return num_devices > 1 ||
           std::any_of(instructions.begin(), instructions.end(),
                       [](const Instruction& i) { return i.is_transfer(); });
  }
  // Whether the arena is a device's own memory.
  bool HasOwnMemory(size_t arena) const {
    return arena < has_own_memory.size() && has_own_memory[arena];
  }
  int num_arenas() const { return num_devices + (has_host_arena ? 1 : 0); }
  // The device in whose own memory the buffer lies; kHostMemory: in none.
  static constexpr int kHostMemory = -1;
  int MemoryOf(int buffer) const {
    const PlanBuffer& place = buffers[buffer];
    return place.space == BufferSpace::kArena && HasOwnMemory(place.device)
               ? place.device
               : kHostMemory;
  }
};

}  // namespace muster

#endif  // WORKER_MODEL_EXECUTION_PLAN_H_
