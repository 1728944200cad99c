#ifndef WORKER_EXECUTOR_PIPELINE_COSTS_H_
#define WORKER_EXECUTOR_PIPELINE_COSTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "worker/model/execution_plan.h"
#include "worker/model/pipeline_stages.h"

namespace muster {

// The costs of a pipeline's stages, for `worker pipeline`.
struct PipelineCosts {
  struct Layer {
    // The layer, as far as it is on this device; "transfer" and "reorder" are
    // layers here.
    std::string name;
    int device = 0;
    absl::Duration forward;
    absl::Duration backward;
  };
  struct Stage {
    absl::Duration forward;
    absl::Duration backward;
    // With their gradients.
    int64_t parameter_bytes = 0;
    int64_t arena_bytes = 0;
    // To other stages, in a step.
    int64_t sent_bytes = 0;
    absl::Duration total() const { return forward + backward; }
  };

  // In the order in which the plan has them.
  std::vector<Layer> layers;
  // By device.
  std::vector<Stage> devices;
};

// `times`: what each instruction has taken. What comes after
// `loss_instruction` is the backward pass. `sizes_bytes`: the parameters'.
PipelineCosts FindPipelineCosts(const ExecutionPlan& plan,
                                size_t loss_instruction,
                                absl::Span<const absl::Duration> times,
                                absl::Span<const int64_t> sizes_bytes);

// The part of a pass in which a device of `stages` even ones has nothing to do:
// (S - 1) / (M + S - 1) (Huang et al., GPipe, 2019).
double TheoreticalBubble(size_t stages, int micro_batches);

// The costs as tables of the stages and of their layers, with the bubble, and
// the most that the stages can be faster than one device.
std::string PipelineTable(const Pipeline& pipeline, const PipelineCosts& costs,
                          absl::Span<const std::string> device_names);

}  // namespace muster

#endif  // WORKER_EXECUTOR_PIPELINE_COSTS_H_
