#ifndef WORKER_HOOK_SESSION_SUMMARIES_H_
#define WORKER_HOOK_SESSION_SUMMARIES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "common/summary/write_summary.h"
#include "worker/hook/hook.h"

namespace muster {

// The hook that tells TensorBoard where a training begins, and again where it
// goes on after a restore, so that no curve folds back; and writes once the
// text of the TrainingSpec, as the tag `training_spec`, and the model's graph.
// Stands before the hooks that write points.
class SessionSummaries : public Hook {
 public:
  // Gets the first step whose points are still to come.
  using WriteStart = std::function<void(int64_t first_step)>;

  // Writes the graph, as of this step.
  using WriteGraph = std::function<void(int64_t global_step)>;

  SessionSummaries(std::string training_text, WriteStart write_start,
                   WriteSummary write, WriteGraph write_graph);

  absl::Status AfterEnter(const EpochRecord& epoch) override;

 private:
  const std::string training_text_;
  const WriteStart write_start_;
  const WriteSummary write_;
  const WriteGraph write_graph_;
  bool described_ = false;
};

}  // namespace muster

#endif  // WORKER_HOOK_SESSION_SUMMARIES_H_
