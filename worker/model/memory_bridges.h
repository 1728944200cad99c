#ifndef WORKER_MODEL_MEMORY_BRIDGES_H_
#define WORKER_MODEL_MEMORY_BRIDGES_H_

#include <vector>

#include "worker/model/execution_plan.h"

namespace muster {

// Rewrites a plan whose devices run side by side, some of them perhaps with
// memory of their own (`has_own_memory`, by device). Afterwards an instruction
// of such a device touches its arena alone, and a transfer copies within the
// host's memory, or between that and one device's, without gaps, on that
// device:
// - what two devices hand over goes through the host's memory, to which it is
//   copied as soon as it is made;
// - a batch and parameters are copied to a device before it first reads them, a
//   gradient to its place after the device's last instruction that writes it;
// - results, which are read after the last instruction, are copied at the end.
// Where a penalty adds to the loss, forward_loss_buffer is a copy from before.
void BridgeMemories(const std::vector<bool>& has_own_memory,
                    ExecutionPlan* plan);

}  // namespace muster

#endif  // WORKER_MODEL_MEMORY_BRIDGES_H_
