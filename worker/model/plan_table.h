#ifndef WORKER_MODEL_PLAN_TABLE_H_
#define WORKER_MODEL_PLAN_TABLE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "worker/model/execution_plan.h"

namespace muster {

// The primitives that compute each layer, for --log_device_placement: a line an
// instruction, in their order, with the primitive's description and the bytes
// of its workspace and scratch:
//   layer  device  pass              primitive                 memory bytes
//   conv1  cpu:0   forward           oneDNN jit:avx512_core           81920
//   conv1  cpu:0   backward weights  own one-channel 5x5              12288
std::string PlanTable(const ExecutionPlan& plan, absl::string_view device);

}  // namespace muster

#endif  // WORKER_MODEL_PLAN_TABLE_H_
