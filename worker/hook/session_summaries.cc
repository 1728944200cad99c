#include "worker/hook/session_summaries.h"

#include <utility>

#include "common/summary/summary_value.h"

namespace muster {

SessionSummaries::SessionSummaries(std::string training_text,
                                   WriteStart write_start, WriteSummary write,
                                   WriteGraph write_graph)
    : training_text_(std::move(training_text)),
      write_start_(std::move(write_start)),
      write_(std::move(write)),
      write_graph_(std::move(write_graph)) {}

// TensorBoard forgets the points of this step and above. Those of the step
// that was entered are still true: they were written when it was reached. After
// an initialization nothing is.
absl::Status SessionSummaries::AfterEnter(const EpochRecord& epoch) {
  write_start_(epoch.initialized ? 0 : epoch.global_step + 1);
  if (std::exchange(described_, true)) return absl::OkStatus();
  Summary summary;
  AddText("training_spec", MarkdownBlock(training_text_), &summary);
  write_(epoch.global_step, std::move(summary));
  write_graph_(epoch.global_step);
  return absl::OkStatus();
}

}  // namespace muster
