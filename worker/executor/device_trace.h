#ifndef WORKER_EXECUTOR_DEVICE_TRACE_H_
#define WORKER_EXECUTOR_DEVICE_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/backend/device_streams.h"

namespace muster {

// One stream's work for a while.
struct DeviceSpan {
  DeviceStreams::Stream stream = DeviceStreams::Stream::kCompute;
  // In static storage: "forward", "backward" and "update" in kCompute, "batch"
  // in kToDevice, "loss", "mean" and "results" in kToHost; empty for the copy
  // of a parameter or of its gradient.
  const char* name = "";
  // Which parameter it is about, in creation order; -1: none.
  int tensor = -1;
  // That were copied; 0: it is no copy.
  int64_t bytes = 0;
  absl::Time begin = absl::InfinitePast();
  absl::Time end = absl::InfinitePast();
};

// A device's work in one step, for whoever wants to know: it is asked for
// before the step. On the axis of the host (DeviceTimer says how exactly).
struct DeviceTrace {
  // "cuda:1".
  std::string device;
  const Clock* clock = SystemClock();
  // Each stream's in the order of time, without overlaps; none of a device
  // without streams.
  std::vector<DeviceSpan> spans = {};
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_DEVICE_TRACE_H_
