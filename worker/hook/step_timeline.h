#ifndef WORKER_HOOK_STEP_TIMELINE_H_
#define WORKER_HOOK_STEP_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/summary/timeline.h"
#include "worker/executor/device_trace.h"
#include "worker/hook/hook.h"

namespace muster {

// Steps of this worker as spans: one lane for the steps with what belongs to
// none of the others (waiting for rows, hooks, the report to ps task 0), one
// for the rows that are prepared ahead, one each for pull, compute and push,
// three for each device with streams, and as many as are wanted side by side
// for the tensors on their way.
//
// A step is from its grant to its report's answer. Not in it are the hooks'
// AfterStep calls: they are the gaps.
class StepTimeline {
 public:
  struct Options {
    // In creation order.
    std::vector<std::string> tensor_names;
    // Of this process, for the numbers of its parts (PartNumber).
    uint64_t incarnation = 0;
  };

  // `timeline` outlives this.
  StepTimeline(Options options, Timeline* timeline);

  // As AfterStep gets it.
  void AddStep(const StepRecord& step);

 private:
  void AddDevices(const StepRecord& step);
  void NameDeviceLanes(const std::vector<DeviceTrace>& devices);
  void AddSends(const StepRecord& step);

  const Options options_;
  Timeline& timeline_;
  bool has_named_devices_ = false;
  // Lanes of the tensors on their way so far.
  size_t send_lanes_ = 0;
};

}  // namespace muster

#endif  // WORKER_HOOK_STEP_TIMELINE_H_
