#ifndef WORKER_PROGRAM_PROGRAM_HOOK_H_
#define WORKER_PROGRAM_PROGRAM_HOOK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/summary/write_summary.h"
#include "worker/hook/hook.h"
#include "worker/program/program_steps.h"

namespace muster {

// The hook between a program and its session: tells the program's steps what
// became of them, and does what the program wants done between two steps.
class ProgramHook : public Hook {
 public:
  // `steps` outlives this.
  explicit ProgramHook(ProgramSteps* steps) : steps_(*steps) {}

  // Before the first call of the session: how figures are written, and how a
  // checkpoint is begun. Null: they are not.
  void Connect(WriteSummary write, std::function<void()> save) {
    write_ = std::move(write);
    save_ = std::move(save);
  }

  absl::Status AfterStep(const StepRecord& step) override;
  // Writes what is left.
  absl::Status AtEnd(const EndRecord& end) override;

  // A figure of the step that is counted next; of several of one name the
  // newest stays. Thread-safe.
  void Log(absl::string_view name, double value) ABSL_LOCKS_EXCLUDED(mu_);
  // A checkpoint is begun when the next step is counted. Thread-safe.
  void Save() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void WriteFigures(int64_t global_step) ABSL_LOCKS_EXCLUDED(mu_);

  ProgramSteps& steps_;
  WriteSummary write_;
  std::function<void()> save_;

  absl::Mutex mu_;
  std::map<std::string, double> figures_ ABSL_GUARDED_BY(mu_);
  bool wants_save_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster

#endif  // WORKER_PROGRAM_PROGRAM_HOOK_H_
