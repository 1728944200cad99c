#include "worker/hook/profiler.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

enum Lane { kStep = 1, kPull, kCompute, kPush };

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
  trace_.AddSpan(kStep, "input", times.begun, times.read, step.step);
  trace_.AddSpan(kPull, "pull", times.read, times.pulled, step.step);
  trace_.AddSpan(kCompute, "compute", times.pulled, times.computed, step.step);
  trace_.AddSpan(kStep, "hooks", times.computed, times.decided, step.step);
  trace_.AddSpan(kPush, "push", times.decided, times.pushed, step.step);
  trace_.AddSpan(kStep, "report", times.pushed, step.now, step.step);
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
