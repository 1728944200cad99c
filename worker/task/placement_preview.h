#ifndef WORKER_TASK_PLACEMENT_PREVIEW_H_
#define WORKER_TASK_PLACEMENT_PREVIEW_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/training.pb.h"

namespace muster {

// Which of `num_ps` ps tasks would hold which parameter, as a table. Errors:
// what is wrong with the model or its placement.
absl::StatusOr<std::string> DescribePlacement(const TrainingSpec& training,
                                              int num_ps);

}  // namespace muster

#endif  // WORKER_TASK_PLACEMENT_PREVIEW_H_
