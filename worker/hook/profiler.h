#ifndef WORKER_HOOK_PROFILER_H_
#define WORKER_HOOK_PROFILER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/reporter.h"
#include "common/summary/chrome_trace.h"
#include "worker/hook/hook.h"
#include "worker/hook/step_timeline.h"
#include "worker/tower/computed_step.h"

namespace muster {

// The hook that writes a timeline of some steps of this worker (StepTimeline).
// Costs nothing outside those steps. A step that was given up, or refused, is
// not in it.
class Profiler : public Hook {
 public:
  struct Options {
    // "/job:worker/task:1", and a number of its own among the processes.
    std::string task_name;
    int64_t process_id = 0;
    ProfiledSteps steps;
    // The file's path.
    std::string path;
    StepTimeline::Options spans;
  };
  using Write = std::function<absl::Status(const std::string& path,
                                           const std::string& content)>;

  Profiler(const Options& options, Write write, Reporter reporter);

  // A file that cannot be written is said; the training goes on.
  absl::Status AfterStep(const StepRecord& step) override;
  // Writes what there is, if the training ends before.
  absl::Status AtEnd(const EndRecord& end) override;

 private:
  void WriteFile();

  const Options options_;
  const Write write_;
  const Reporter reporter_;
  ChromeTrace trace_;
  StepTimeline steps_;
  int64_t recorded_ = 0;
  bool written_ = false;
};

}  // namespace muster

#endif  // WORKER_HOOK_PROFILER_H_
