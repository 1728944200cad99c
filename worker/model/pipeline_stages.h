#ifndef WORKER_MODEL_PIPELINE_STAGES_H_
#define WORKER_MODEL_PIPELINE_STAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/model/program.h"

namespace muster {

// The layers of one device, in the order of the forward pass.
struct PipelineStage {
  int device = 0;
  std::vector<std::string> layers;
};

// Stages, and the parts of a batch that they work on side by side.
struct Pipeline {
  int micro_batches = 1;
  // By the first operation of each device.
  std::vector<PipelineStage> stages;
  // "pipeline: 8 micro-batches of 64 rows; cpu:0 computes conv1 to pool1, cpu:1
  // computes conv2 to loss", and that batch norms are of micro-batches, if
  // there are any.
  std::string title;
};

// Errors: InvalidArgument if they are not 2 or more.
absl::Status CheckMicroBatches(int micro_batches);
// Errors: InvalidArgument if they do not divide the batch.
absl::Status CheckDivides(int micro_batches, int64_t batch_size);

// The stages that compute `micro_batch`. Errors: InvalidArgument naming a
// layer, if there is one stage alone, or if an operation reads what a later
// stage makes.
absl::StatusOr<Pipeline> FindPipeline(
    const Program& micro_batch, int micro_batches,
    absl::Span<const std::string> device_names);

}  // namespace muster

#endif  // WORKER_MODEL_PIPELINE_STAGES_H_
