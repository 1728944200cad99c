#include "worker/model/device_bytes.h"

namespace muster {

std::vector<int64_t> ParameterBytes(const ExecutionPlan& plan,
                                    absl::Span<const int64_t> sizes_bytes,
                                    int copies) {
  std::vector<int64_t> bytes(plan.num_devices, 0);
  std::vector<bool> counted(sizes_bytes.size(), false);
  for (const PlanBuffer& buffer : plan.buffers) {
    // The whole comes before its parts, on the device that reads it first.
    if (buffer.space != BufferSpace::kParameter || counted[buffer.index]) {
      continue;
    }
    counted[buffer.index] = true;
    bytes[buffer.device] += sizes_bytes[buffer.index] * copies;
  }
  return bytes;
}

std::vector<int64_t> SentBytes(const ExecutionPlan& plan) {
  std::vector<int64_t> bytes(plan.num_devices, 0);
  for (const Instruction& instruction : plan.instructions) {
    if (!instruction.is_transfer()) continue;
    const PlanBuffer& src = plan.buffers[instruction.operands.front().buffer];
    const PlanBuffer& dst = plan.buffers[instruction.operands.back().buffer];
    const bool is_device = src.device < plan.num_devices;
    if (is_device && src.device != dst.device) {
      bytes[src.device] += dst.size_bytes;
    }
  }
  return bytes;
}

}  // namespace muster
