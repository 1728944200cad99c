#ifndef WORKER_TOWER_GRADIENT_MEMORY_H_
#define WORKER_TOWER_GRADIENT_MEMORY_H_

#include <vector>

#include "absl/types/span.h"
#include "common/tensor/aligned_buffer.h"
#include "worker/executor/compiled_model.h"

namespace muster {

// Allocates `*memory` for one more gradient of every parameter of `model`;
// returns where each lies in it, zeroed and aligned.
std::vector<absl::Span<float>> PlaceGradients(const CompiledModel& model,
                                              AlignedBuffer* memory);
// The same for tensors of these sizes.
std::vector<absl::Span<float>> PlaceLike(
    absl::Span<const absl::Span<float>> tensors, AlignedBuffer* memory);

}  // namespace muster

#endif  // WORKER_TOWER_GRADIENT_MEMORY_H_
