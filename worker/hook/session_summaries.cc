#include "worker/hook/session_summaries.h"

#include <utility>

#include "common/summary/hparams.h"
#include "common/summary/summary_value.h"

namespace muster {

SessionSummaries::SessionSummaries(std::string training_text,
                                   HparamsSessionStart hparams,
                                   WriteStart write_start, WriteSummary write,
                                   WriteGraph write_graph,
                                   std::function<absl::Time()> wall_now)
    : training_text_(std::move(training_text)),
      hparams_(std::move(hparams)),
      write_start_(std::move(write_start)),
      write_(std::move(write)),
      write_graph_(std::move(write_graph)),
      wall_now_(std::move(wall_now)) {}

double SessionSummaries::SecondsNow() const {
  return absl::ToDoubleSeconds(wall_now_() - absl::UnixEpoch());
}

// TensorBoard forgets the points of this step and above. Those of the step
// that was entered are still true: they were written when it was reached. After
// an initialization nothing is.
absl::Status SessionSummaries::AfterEnter(const EpochRecord& epoch) {
  write_start_(epoch.initialized ? 0 : epoch.global_step + 1);
  if (std::exchange(described_, true)) return absl::OkStatus();
  Summary summary;
  AddText("training_spec", MarkdownBlock(training_text_), &summary);
  hparams_.set_start_time_secs(SecondsNow());
  AddHparamsStart(hparams_, &summary);
  write_(epoch.global_step, std::move(summary));
  write_graph_(epoch.global_step);
  return absl::OkStatus();
}

// A training that was interrupted has no end: of two TensorBoard would keep
// this one.
absl::Status SessionSummaries::AtEnd(const EndRecord& end) {
  if (!end.completed) return absl::OkStatus();
  HparamsSessionEnd outcome;
  outcome.set_status(end.failed ? HparamsSessionEnd::FAILURE
                                : HparamsSessionEnd::SUCCESS);
  outcome.set_end_time_secs(SecondsNow());
  Summary summary;
  AddHparamsEnd(outcome, &summary);
  write_(end.global_step, std::move(summary));
  return absl::OkStatus();
}

}  // namespace muster
