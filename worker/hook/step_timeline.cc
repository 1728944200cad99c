#include "worker/hook/step_timeline.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/rpc/part_number.h"
#include "common/summary/lane_packer.h"
#include "worker/client/push.h"

namespace muster {
namespace {

// How many lanes there are for tensors on their way is known at the end only.
enum Lane {
  kStep = 1,
  kInput,
  kPull,
  kCompute,
  kPush,
  kFirstDevice,
  kFirstSend = 1000,
};

// In the order of DeviceStreams::Stream.
constexpr const char* kStreamNames[] = {"device compute", "to device",
                                        "to host"};
constexpr int kStreams = 3;

}  // namespace

StepTimeline::StepTimeline(Options options, Timeline* timeline)
    : options_(std::move(options)), timeline_(*timeline) {
  timeline_.NameLane(kStep, "step");
  timeline_.NameLane(kInput, "input");
  timeline_.NameLane(kPull, "pull");
  timeline_.NameLane(kCompute, "compute");
  timeline_.NameLane(kPush, "push");
}

void StepTimeline::AddStep(const StepRecord& step) {
  const StepTimes& times = step.times;
  timeline_.AddSpan(kStep, "step", times.begun, step.now, step.step);
  timeline_.AddSpan(kStep, "input", times.read_begun, times.read, step.step);
  if (times.rows_begun < times.rows_done) {
    timeline_.AddSpan(kInput, "prepare rows", times.rows_begun, times.rows_done,
                      step.step);
  }
  // Else the push before has brought the parameters.
  if (times.pull_begun < times.pulled) {
    timeline_.AddSpan(kPull, "pull", times.pull_begun, times.pulled, step.step);
  }
  timeline_.AddSpan(kCompute, "compute", times.compute_begun, times.computed,
                    step.step);
  if (times.forward_end.has_value() && times.backward_end.has_value()) {
    timeline_.AddSpan(kCompute, "forward", times.compute_begun,
                      *times.forward_end, step.step);
    timeline_.AddSpan(kCompute, "backward", *times.forward_end,
                      *times.backward_end, step.step);
  }
  for (const ParameterWait& wait : times.waits) {
    timeline_.AddSpan(
        kCompute, absl::StrCat("wait for ", options_.tensor_names[wait.tensor]),
        wait.from, wait.until, step.step);
  }
  timeline_.AddSpan(kStep, "hooks", std::max(times.begun, times.computed),
                    times.decided, step.step);
  timeline_.AddSpan(kPush, "push", times.decided, times.pushed, step.step);
  timeline_.AddSpan(kStep, "report", times.ended, step.now, step.step);
  AddDevices(step);
  AddSends(step);
}

void StepTimeline::NameDeviceLanes(const std::vector<DeviceTrace>& devices) {
  if (std::exchange(has_named_devices_, true)) return;
  for (size_t i = 0; i < devices.size(); ++i) {
    const std::string of =
        devices.size() == 1 ? "" : absl::StrCat(" of ", devices[i].device);
    for (int stream = 0; stream < kStreams; ++stream) {
      timeline_.NameLane(kFirstDevice + kStreams * static_cast<int>(i) + stream,
                         absl::StrCat(kStreamNames[stream], of));
    }
  }
}

void StepTimeline::AddDevices(const StepRecord& step) {
  int first_lane = kFirstDevice;
  for (const DeviceTrace& device : step.times.devices) {
    // A device without streams has no lanes.
    if (!device.spans.empty()) NameDeviceLanes(step.times.devices);
    for (const DeviceSpan& span : device.spans) {
      std::string name = span.name;
      if (span.tensor >= 0) {
        absl::StrAppend(&name, name.empty() ? "" : " of ",
                        options_.tensor_names[span.tensor]);
      }
      const int lane = first_lane + static_cast<int>(span.stream);
      if (span.bytes == 0) {
        timeline_.AddSpan(lane, name, span.begin, span.end, step.step);
      } else {
        timeline_.AddTransfer(lane, name, span.begin, span.end, step.step,
                              span.bytes);
      }
    }
    first_lane += kStreams;
  }
}

// Each on the first lane that is free.
void StepTimeline::AddSends(const StepRecord& step) {
  std::vector<SliceSend> sends = step.times.sends;
  std::stable_sort(
      sends.begin(), sends.end(),
      [](const SliceSend& a, const SliceSend& b) { return a.left < b.left; });
  LanePacker lanes;
  // The first of each message has its number.
  absl::flat_hash_set<uint64_t> numbered;
  for (const SliceSend& send : sends) {
    const size_t lane = lanes.LaneOf(send.left, send.acknowledged);
    const int number = kFirstSend + static_cast<int>(lane);
    if (lane == send_lanes_) {
      timeline_.NameLane(number, absl::StrCat("send ", ++send_lanes_));
    }
    const uint64_t part =
        PartNumber(options_.incarnation, step.step, send.ps_task, send.part);
    timeline_.Add({number,
                   send.tensor < 0 ? absl::string_view("rows")
                                   : options_.tensor_names[send.tensor],
                   send.left, send.acknowledged, step.step, send.bytes,
                   numbered.insert(part).second ? part : 0});
  }
}

}  // namespace muster
