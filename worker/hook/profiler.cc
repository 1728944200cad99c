#include "worker/hook/profiler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/client/slice_send.h"

namespace muster {
namespace {

enum Lane { kStep = 1, kPull, kCompute, kPush, kFirstSend };

// Whether `next` may follow on the lane of `last`. What one message carries has
// the same times.
bool FitsBehind(const SliceSend& last, const SliceSend& next) {
  return last.acknowledged <= next.left ||
         (last.left == next.left && last.acknowledged == next.acknowledged);
}

}  // namespace

Profiler::Profiler(const Options& options, Write write, Say say)
    : options_(options),
      write_(std::move(write)),
      say_(std::move(say)),
      trace_(options.task_name, options.process_id) {
  trace_.NameLane(kStep, "step");
  trace_.NameLane(kPull, "pull");
  trace_.NameLane(kCompute, "compute");
  trace_.NameLane(kPush, "push");
}

absl::Status Profiler::AfterStep(const StepRecord& step) {
  if (written_ || step.step < options_.from_step) return absl::OkStatus();
  AddStep(step);
  if (++recorded_ >= options_.steps) WriteFile();
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
  AddSends(step);
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
    return say_(/*is_error=*/true,
                absl::StrCat("no profile: the training ended before step ",
                             options_.from_step, " of this process"));
  }
  const absl::Status status = write_(options_.path, trace_.Json());
  if (!status.ok()) {
    return say_(/*is_error=*/true,
                absl::StrCat("profile not written: ", status.message()));
  }
  say_(/*is_error=*/false,
       absl::StrCat("wrote a profile of ", recorded_, " steps: ", options_.path,
                    " (open it in ui.perfetto.dev)"));
}

}  // namespace muster
