#ifndef WORKER_BACKEND_CHECK_LABELS_H_
#define WORKER_BACKEND_CHECK_LABELS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/backend/operation.h"

namespace muster {

// InvalidArgument unless `rows` is in [1, batch].
absl::Status CheckRows(int64_t batch, int64_t rows);

// InvalidArgument unless `rows` is in [1, batch] and the first `rows` labels
// are in [0, classes). Labels come from files: a backend calls this before it
// uses one as an index. `labels` holds at least `rows` values.
absl::Status CheckLabels(const SoftmaxCrossEntropyDesc& desc,
                         const int32_t* labels, int64_t rows);

// InvalidArgument unless all of `targets`, [rows, num_targets], are from 0 to
// 1: another one gives a loss of probabilities that has no least value.
absl::Status CheckProbabilities(absl::Span<const float> targets,
                                int64_t num_targets);

}  // namespace muster

#endif  // WORKER_BACKEND_CHECK_LABELS_H_
