#include "worker/hook/profiler.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {

Profiler::Profiler(const Options& options, Write write, Reporter reporter)
    : options_(options),
      write_(std::move(write)),
      reporter_(std::move(reporter)),
      trace_(options.task_name, options.process_id),
      steps_(options.spans, &trace_) {}

absl::Status Profiler::AfterStep(const StepRecord& step) {
  if (written_) return absl::OkStatus();
  if (options_.steps.Has(step.step)) {
    steps_.AddStep(step);
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
