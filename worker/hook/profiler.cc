#include "worker/hook/profiler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
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

// Whether `next` may follow on the lane of `last`. What one message carries has
// the same times.
bool FitsBehind(const SliceSend& last, const SliceSend& next) {
  return last.acknowledged <= next.left ||
         (last.left == next.left && last.acknowledged == next.acknowledged);
}

}  // namespace

Profiler::Profiler(const Options& options, Write write, Reporter reporter)
    : options_(options),
      write_(std::move(write)),
      reporter_(std::move(reporter)),
      trace_(options.task_name, options.process_id) {
  trace_.NameLane(kStep, "step");
  trace_.NameLane(kInput, "input");
  trace_.NameLane(kPull, "pull");
  trace_.NameLane(kCompute, "compute");
  trace_.NameLane(kPush, "push");
}

absl::Status Profiler::AfterStep(const StepRecord& step) {
  if (written_) return absl::OkStatus();
  if (options_.steps.Has(step.step)) {
    AddStep(step);
    ++recorded_;
  }
  if (options_.steps.AreBefore(step.step + 1)) WriteFile();
  return absl::OkStatus();
}

absl::Status Profiler::AtEnd(const EndRecord& end) {
  static_cast<void>(end);
  if (!written_) WriteFile();
  return absl::OkStatus();
}

void Profiler::AddStep(const StepRecord& step) {
  const StepTimes& times = step.times;
  trace_.AddSpan(kStep, "step", times.begun, step.now, step.step);
  trace_.AddSpan(kStep, "input", times.read_begun, times.read, step.step);
  if (times.rows_begun < times.rows_done) {
    trace_.AddSpan(kInput, "prepare rows", times.rows_begun, times.rows_done,
                   step.step);
  }
  // Else the push before has brought the parameters.
  if (times.pull_begun < times.pulled) {
    trace_.AddSpan(kPull, "pull", times.pull_begun, times.pulled, step.step);
  }
  trace_.AddSpan(kCompute, "compute", times.compute_begun, times.computed,
                 step.step);
  if (times.forward_end.has_value() && times.backward_end.has_value()) {
    trace_.AddSpan(kCompute, "forward", times.compute_begun, *times.forward_end,
                   step.step);
    trace_.AddSpan(kCompute, "backward", *times.forward_end,
                   *times.backward_end, step.step);
  }
  for (const ParameterWait& wait : times.waits) {
    trace_.AddSpan(
        kCompute, absl::StrCat("wait for ", options_.tensor_names[wait.tensor]),
        wait.from, wait.until, step.step);
  }
  trace_.AddSpan(kStep, "hooks", std::max(times.begun, times.computed),
                 times.decided, step.step);
  trace_.AddSpan(kPush, "push", times.decided, times.pushed, step.step);
  trace_.AddSpan(kStep, "report", times.ended, step.now, step.step);
  AddDevices(step);
  AddSends(step);
}

void Profiler::NameDeviceLanes(const std::vector<DeviceTrace>& devices) {
  if (std::exchange(has_named_devices_, true)) return;
  for (size_t i = 0; i < devices.size(); ++i) {
    const std::string of =
        devices.size() == 1 ? "" : absl::StrCat(" of ", devices[i].device);
    for (int stream = 0; stream < kStreams; ++stream) {
      trace_.NameLane(kFirstDevice + kStreams * static_cast<int>(i) + stream,
                      absl::StrCat(kStreamNames[stream], of));
    }
  }
}

void Profiler::AddDevices(const StepRecord& step) {
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
        trace_.AddSpan(lane, name, span.begin, span.end, step.step);
      } else {
        trace_.AddTransfer(lane, name, span.begin, span.end, step.step,
                           span.bytes);
      }
    }
    first_lane += kStreams;
  }
}

// Each on the first lane that is free.
void Profiler::AddSends(const StepRecord& step) {
  std::vector<SliceSend> sends = step.times.sends;
  std::stable_sort(
      sends.begin(), sends.end(),
      [](const SliceSend& a, const SliceSend& b) { return a.left < b.left; });
  std::vector<SliceSend> last;  // by lane
  for (const SliceSend& send : sends) {
    size_t lane = 0;
    while (lane < last.size() && !FitsBehind(last[lane], send)) ++lane;
    if (lane == last.size()) last.emplace_back();
    last[lane] = send;
    const int number = kFirstSend + static_cast<int>(lane);
    if (lane == send_lanes_) {
      trace_.NameLane(number, absl::StrCat("send ", ++send_lanes_));
    }
    trace_.AddTransfer(number, options_.tensor_names[send.tensor], send.left,
                       send.acknowledged, step.step, send.bytes);
  }
}

void Profiler::WriteFile() {
  written_ = true;
  if (recorded_ == 0) {
    return reporter_.Error(
        absl::StrCat("no profile: the training ended before step ",
                     options_.steps.first, " of this process"));
  }
  const absl::Status status = write_(options_.path, trace_.Json());
  if (!status.ok()) {
    return reporter_.Error(
        absl::StrCat("profile not written: ", status.message()));
  }
  reporter_.Info(absl::StrCat("wrote a profile of ", recorded_, " steps: ",
                              options_.path, " (open it in ui.perfetto.dev)"));
}

}  // namespace muster
