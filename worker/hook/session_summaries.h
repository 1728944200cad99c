#ifndef WORKER_HOOK_SESSION_SUMMARIES_H_
#define WORKER_HOOK_SESSION_SUMMARIES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "worker/hook/hook.h"
#include "worker/hook/write_summary.h"

namespace muster {

// The hook that tells TensorBoard where a training begins, and again where it
// goes on after a restore, so that no curve folds back; and writes the text of
// the TrainingSpec once, as the tag `training_spec`. Stands before the hooks
// that write points.
class SessionSummaries : public Hook {
 public:
  // Gets the first step whose points are still to come.
  using WriteStart = std::function<void(int64_t first_step)>;

  SessionSummaries(std::string training_text, WriteStart write_start,
                   WriteSummary write);

  absl::Status AfterEnter(const EpochRecord& epoch) override;

 private:
  const std::string training_text_;
  const WriteStart write_start_;
  const WriteSummary write_;
  bool text_written_ = false;
};

}  // namespace muster

#endif  // WORKER_HOOK_SESSION_SUMMARIES_H_
