#ifndef WORKER_TOWER_MEAN_H_
#define WORKER_TOWER_MEAN_H_

#include "absl/types/span.h"

namespace muster {

// Loops over floats for the instruction set of this machine; the sums are made
// in the order of the arguments, so that a result is the same in every run.
// Thread-safe on memory that does not overlap.

// dst = (srcs[0] + srcs[1] + ...) / srcs.size(). `dst` may be one of them.
// REQUIRES: one or more, each as long as `dst`.
void WriteMean(absl::Span<const absl::Span<const float>> srcs,
               absl::Span<float> dst);

// sum = (sum + src) * scale. REQUIRES: equally long.
void AddAndScale(absl::Span<const float> src, float scale,
                 absl::Span<float> sum);

}  // namespace muster

#endif  // WORKER_TOWER_MEAN_H_
