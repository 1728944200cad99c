#ifndef WORKER_HOOK_SESSION_SUMMARIES_H_
#define WORKER_HOOK_SESSION_SUMMARIES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "common/summary/write_summary.h"
#include "proto/hparams.pb.h"
#include "worker/hook/hook.h"

namespace muster {

// The hook that tells TensorBoard where a training begins, and again where it
// goes on after a restore, so that no curve folds back; and writes once the
// text of the TrainingSpec, as the tag `training_spec`, the model's graph, and
// the settings for the HPARAMS page; at the end of the training, that it ended.
// Stands before the hooks that write points.
class SessionSummaries : public Hook {
 public:
  // Gets the first step whose points are still to come.
  using WriteStart = std::function<void(int64_t first_step)>;

  // Writes the graph, as of this step.
  using WriteGraph = std::function<void(int64_t global_step)>;

  // `hparams` without a time, which `wall_now` gives.
  SessionSummaries(std::string training_text, HparamsSessionStart hparams,
                   WriteStart write_start, WriteSummary write,
                   WriteGraph write_graph,
                   std::function<absl::Time()> wall_now);

  absl::Status AfterEnter(const EpochRecord& epoch) override;
  absl::Status AtEnd(const EndRecord& end) override;

 private:
  double SecondsNow() const;

  const std::string training_text_;
  HparamsSessionStart hparams_;
  const WriteStart write_start_;
  const WriteSummary write_;
  const WriteGraph write_graph_;
  const std::function<absl::Time()> wall_now_;
  bool described_ = false;
};

}  // namespace muster

#endif  // WORKER_HOOK_SESSION_SUMMARIES_H_
