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

constexpr absl::string_view kEraseLine = "\r\x1b[2K";
constexpr absl::string_view kCyan = "\x1b[36m";
constexpr absl::string_view kPlain = "\x1b[0m";

}  // namespace

std::string FormatLeft(absl::Duration left) {
  const int64_t s = std::max<int64_t>(0, absl::ToInt64Seconds(left));
  if (s < 60) return absl::StrCat(s, "s");
  if (s < 3600) return absl::StrFormat("%dm%02ds", s / 60, s % 60);
  return absl::StrFormat("%dh%02dm", s / 3600, s / 60 % 60);
}

Progress::Progress(const Options& options, Write write)
    : options_(options), write_(std::move(write)) {}

absl::Status Progress::AfterEnter(const EpochRecord& epoch) {
  meter_.Start(epoch.now, epoch.global_step);
  global_step_ = epoch.global_step;
  any_step_ = false;
  return absl::OkStatus();
}

absl::Status Progress::AfterStep(const StepRecord& step) {
  meter_.Add(step);
  global_step_ = step.global_step;
  if (step.dropped) ++dropped_;
  any_step_ = true;
  const absl::Duration every =
      options_.terminal ? kTerminalEvery : options_.every;
  if (meter_.length() < every) return absl::OkStatus();
  Show(/*last=*/false);
  meter_.Start(step.now, step.global_step);
  any_step_ = false;
  return absl::OkStatus();
}

absl::Status Progress::AtEnd(const EndRecord& end) {
  static_cast<void>(end);
  if (any_step_) {
    Show(/*last=*/true);
  } else if (shown_ && options_.terminal) {
    write_("\n");
  }
  shown_ = any_step_ = false;
  return absl::OkStatus();
}

void Progress::Show(bool last) {
  std::string line = Line();
  if (!options_.terminal) return write_(line);
  shown_ = true;
  line = absl::StrCat(options_.label, " ", line);
  // One column stays free: a full line makes some terminals scroll.
  const size_t width = std::max(20, options_.columns - 1);
  if (line.size() > width) line.resize(width);
  if (options_.color) {
    const size_t label = std::min(options_.label.size(), line.size());
    line =
        absl::StrCat(kCyan, line.substr(0, label), kPlain, line.substr(label));
  }
  write_(absl::StrCat(kEraseLine, line, last ? "\n" : ""));
}

std::string Progress::Line() const {
  std::string line = absl::StrFormat(
      "step=%d loss=%s steps_per_s=%s examples_per_s=%.0f staleness=%.1f",
      global_step_, ReadableNumber(meter_.mean_loss(), 4),
      ReadableNumber(meter_.steps_per_s(), 3), meter_.examples_per_s(),
      meter_.mean_staleness());
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
