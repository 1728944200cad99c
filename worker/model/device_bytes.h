#ifndef WORKER_MODEL_DEVICE_BYTES_H_
#define WORKER_MODEL_DEVICE_BYTES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "worker/model/execution_plan.h"

namespace muster {

// By device, the bytes of the parameters that its instructions are the first to
// read, `copies` times: with their gradients twice. `sizes_bytes`: the
// parameters'.
std::vector<int64_t> ParameterBytes(const ExecutionPlan& plan,
                                    absl::Span<const int64_t> sizes_bytes,
                                    int copies);

// By device, the bytes that a step copies from it to others, or to the host's
// arena on their way.
std::vector<int64_t> SentBytes(const ExecutionPlan& plan);

}  // namespace muster

#endif  // WORKER_MODEL_DEVICE_BYTES_H_
