#include "common/checkpoint/write_watch.h"

#include <algorithm>

namespace muster {

WriteWatch::WriteWatch(Options options)
    : options_(std::move(options)),
      writes_(options_.limit),
      thread_(options_.clock->StartThread([this] { ThreadLoop(); })) {}

WriteWatch::~WriteWatch() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
  }
  thread_.reset();
}

int64_t WriteWatch::Begin(std::string what, SlowWrites::Kind kind) {
  absl::MutexLock lock(&mu_);
  has_changed_ = true;
  return writes_.Begin(std::move(what), options_.clock->Now(), kind);
}

void WriteWatch::End(int64_t number) {
  absl::MutexLock lock(&mu_);
  has_changed_ = true;
  writes_.End(number);
}

void WriteWatch::ThreadLoop() {
  const auto awake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stop_ || has_changed_;
  };
  while (true) {
    SlowWrites::Due due;
    {
      absl::MutexLock lock(&mu_);
      const absl::Duration pause = std::max(
          absl::ZeroDuration(), writes_.next_due() - options_.clock->Now());
      options_.clock->Await(&mu_, absl::Condition(&awake), pause);
      if (stop_) return;
      has_changed_ = false;
      due = writes_.Handle(options_.clock->Now());
    }
    for (const std::string& line : due.lines) options_.reporter.Warning(line);
    if (due.overdue.has_value() && options_.report != nullptr) {
      options_.report(*due.overdue);
    }
  }
}

}  // namespace muster
