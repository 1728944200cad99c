#include "worker/hook/progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/readable_number.h"

namespace muster {
namespace {

// Fast enough to look alive, slow enough to be read.
constexpr absl::Duration kTerminalEvery = absl::Milliseconds(500);

// A share of the time: below it, more input threads would change nothing to
// speak of.
constexpr double kLeastInputWait = 0.05;

}  // namespace

Progress::Progress(const Options& options, ProgressOutput output)
    : options_(options), output_(std::move(output)) {}

absl::Status Progress::AfterEnter(const EpochRecord& epoch) {
  meter_.Start(epoch.now, epoch.global_step);
  global_step_ = epoch.global_step;
  any_step_ = false;
  return absl::OkStatus();
}

absl::Status Progress::AfterStep(const StepRecord& step) {
  meter_.Add(step);
  global_step_ = step.global_step;
  has_loss_ = step.has_loss;
  if (step.dropped) ++dropped_;
  any_step_ = true;
  const bool is_live = output_.show_live != nullptr;
  if (meter_.length() < (is_live ? kTerminalEvery : options_.every)) {
    return absl::OkStatus();
  }
  if (is_live) {
    live_line_ = Line();
    output_.show_live(live_line_);
  } else {
    output_.reporter.Info(Line());
  }
  meter_.Start(step.now, step.global_step);
  any_step_ = false;
  return absl::OkStatus();
}

absl::Status Progress::AtEnd(const EndRecord& end) {
  static_cast<void>(end);
  if (any_step_) live_line_ = Line();
  // The line in the log takes its place.
  if (!live_line_.empty()) output_.reporter.Info(live_line_);
  live_line_.clear();
  any_step_ = false;
  return absl::OkStatus();
}

std::string Progress::Line() const {
  const std::string loss =
      has_loss_ ? absl::StrCat(" loss=", ReadableNumber(meter_.mean_loss(), 4))
                : "";
  std::string line = absl::StrFormat(
      "step=%d%s steps_per_s=%s examples_per_s=%.0f staleness=%.1f",
      global_step_, loss, ReadableNumber(meter_.steps_per_s(), 3),
      meter_.examples_per_s(), meter_.mean_staleness());
  if (dropped_ > 0) absl::StrAppend(&line, " dropped_steps=", dropped_);
  if (meter_.input_wait() >= kLeastInputWait) {
    absl::StrAppendFormat(&line, " input_wait=%.0f%%",
                          100 * meter_.input_wait());
  }
  const int64_t bad =
      options_.bad_records == nullptr ? 0 : options_.bad_records();
  if (bad > 0) absl::StrAppend(&line, " bad_records=", bad);
  const double rate = meter_.global_steps_per_s();
  if (options_.target_step > 0 && rate > 0) {
    const int64_t steps =
        std::max<int64_t>(0, options_.target_step - global_step_);
    absl::StrAppend(&line, " left=", FormatLeft(absl::Seconds(steps / rate)));
  }
  return line;
}

}  // namespace muster
