#include "common/base/work_progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/readable_number.h"

namespace muster {
namespace {

constexpr absl::Duration kPlainEvery = absl::Seconds(10);
// Work that is over sooner needs no bar.
constexpr absl::Duration kLiveAfter = absl::Seconds(1);
constexpr absl::Duration kLiveEvery = absl::Milliseconds(250);
constexpr int64_t kBarColumns = 20;

}  // namespace

WorkProgress::WorkProgress(ProgressOutput output)
    : output_(std::move(output)),
      begun_(output_.clock->Now()),
      show_at_(begun_ +
               (output_.show_live == nullptr ? kPlainEvery : kLiveAfter)) {}

void WorkProgress::Begin(Work work) {
  work_ = std::move(work);
  begun_ = output_.clock->Now();
  done_ = unseen_rows_ = 0;
}

void WorkProgress::Add(int64_t count) {
  done_ += count + std::exchange(unseen_rows_, 0);
  const absl::Time now = output_.clock->Now();
  if (now < show_at_) return;
  if (output_.show_live == nullptr) {
    show_at_ = now + kPlainEvery;
    output_.reporter.Info(absl::StrCat(work_.name, ": ", Describe(now)));
    return;
  }
  show_at_ = now + kLiveEvery;
  is_shown_ = true;
  output_.show_live(LiveLine(now));
}

void WorkProgress::Finish() {
  if (std::exchange(is_shown_, false)) output_.show_live("");
}

std::string WorkProgress::Describe(absl::Time now) const {
  const auto in_units = [this](int64_t count) {
    return count / work_.counts_per_unit;
  };
  std::string text = absl::StrCat(in_units(done_));
  if (work_.total > 0) absl::StrAppend(&text, " of ", in_units(work_.total));
  absl::StrAppend(&text, " ", work_.unit, work_.total > 0 ? "" : " so far");
  const double rate =
      static_cast<double>(done_) / absl::ToDoubleSeconds(now - begun_);
  if (done_ == 0 || now <= begun_) return text;
  absl::StrAppend(
      &text, ", ",
      ReadableNumber(rate / static_cast<double>(work_.counts_per_unit), 3), " ",
      work_.unit, "/s");
  if (work_.total > 0) {
    const auto left = static_cast<double>(work_.total - done_);
    absl::StrAppend(&text, ", ", FormatLeft(absl::Seconds(left / rate)),
                    " left");
  }
  return text;
}

std::string WorkProgress::LiveLine(absl::Time now) const {
  if (work_.total == 0) return absl::StrCat(work_.name, ": ", Describe(now));
  const double part = std::min(
      1.0, static_cast<double>(done_) / static_cast<double>(work_.total));
  const auto filled = static_cast<size_t>(part * kBarColumns);
  return absl::StrFormat(
      "%s: [%s%s] %.0f%% %s", work_.name, std::string(filled, '='),
      std::string(kBarColumns - filled, ' '), 100 * part, Describe(now));
}

std::string FormatLeft(absl::Duration left) {
  const int64_t s = std::max<int64_t>(0, absl::ToInt64Seconds(left));
  if (s < 60) return absl::StrCat(s, "s");
  if (s < 3600) return absl::StrFormat("%dm%02ds", s / 60, s % 60);
  return absl::StrFormat("%dh%02dm", s / 3600, s / 60 % 60);
}

}  // namespace muster
