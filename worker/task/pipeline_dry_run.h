#ifndef WORKER_TASK_PIPELINE_DRY_RUN_H_
#define WORKER_TASK_PIPELINE_DRY_RUN_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/base/reporter.h"
#include "proto/training.pb.h"
#include "worker/tower/device_names.h"

namespace muster {

// How `worker pipeline` computes.
struct PipelineDryRun {
  TrainingSpec training;
  DeviceChoice device_choice;
  int compute_threads = 1;
  // Workers of the job.
  int num_workers = 1;
  Reporter reporter;
};

// Measures a few steps of one tower, with random examples, and says what its
// stages cost (PipelineTable). Errors: InvalidArgument if the model has no
// pipeline; those of OpenTowers.
absl::StatusOr<std::string> RunPipelineDryRun(const PipelineDryRun& run);

}  // namespace muster

#endif  // WORKER_TASK_PIPELINE_DRY_RUN_H_
