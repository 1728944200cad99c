#ifndef WORKER_MODEL_PLAN_TABLE_H_
#define WORKER_MODEL_PLAN_TABLE_H_

#include <string>

#include "absl/types/span.h"
#include "worker/model/execution_plan.h"

namespace muster {

// What computes each layer, for --log_device_placement: a line an instruction,
// in their order, with the primitive's description and the bytes of its
// workspace and scratch. A transfer, which comes before who reads it first, has
// the bytes that it copies. `devices` are the names of the plan's:
//   layer     device  pass              primitive               memory bytes
//   conv1     cpu:0   forward           oneDNN jit:avx512_core         81920
//   transfer  cpu:1   forward           from cpu:0                    401408
//   conv1     cpu:0   backward weights  own one-channel 5x5            12288
std::string PlanTable(const ExecutionPlan& plan,
                      absl::Span<const std::string> devices);

}  // namespace muster

#endif  // WORKER_MODEL_PLAN_TABLE_H_
