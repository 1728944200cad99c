#ifndef WORKER_HOOK_PROFILER_H_
#define WORKER_HOOK_PROFILER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/reporter.h"
#include "common/summary/chrome_trace.h"
#include "worker/executor/device_trace.h"
#include "worker/hook/hook.h"
#include "worker/tower/computed_step.h"

namespace muster {

// The hook that writes a timeline of some steps of this worker: one lane for
// the steps with what belongs to none of the others (waiting for rows, hooks,
// the report to ps task 0), one for the rows that are prepared ahead, one each
// for pull, compute and push, three for each device with streams, and as many
// as are wanted side by side for the tensors on their way. Costs nothing
// outside those steps. A step that was given up, or refused, is not in it.
//
// A step is from its grant to its report's answer. Not in it are the hooks'
// AfterStep calls: they are the gaps.
class Profiler : public Hook {
 public:
  struct Options {
    // "/job:worker/task:1", and a number of its own among the processes.
    std::string task_name;
    int64_t process_id = 0;
    ProfiledSteps steps;
    // The file's path.
    std::string path;
    // In creation order.
    std::vector<std::string> tensor_names;
  };
  using Write = std::function<absl::Status(const std::string& path,
                                           const std::string& content)>;

  Profiler(const Options& options, Write write, Reporter reporter);

  // A file that cannot be written is said; the training goes on.
  absl::Status AfterStep(const StepRecord& step) override;
  // Writes what there is, if the training ends before.
  absl::Status AtEnd(const EndRecord& end) override;

 private:
  void AddStep(const StepRecord& step);
  void AddDevices(const StepRecord& step);
  void NameDeviceLanes(const std::vector<DeviceTrace>& devices);
  void AddSends(const StepRecord& step);
  void WriteFile();

  const Options options_;
  const Write write_;
  const Reporter reporter_;
  ChromeTrace trace_;
  bool has_named_devices_ = false;
  // Lanes of the tensors on their way so far.
  int send_lanes_ = 0;
  int64_t recorded_ = 0;
  bool written_ = false;
};

}  // namespace muster

#endif  // WORKER_HOOK_PROFILER_H_
