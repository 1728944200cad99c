#include "worker/executor/device_timer.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace muster {

void DeviceTimer::Forget() {
  timed_.clear();
  used_events_ = 0;
}

absl::Status DeviceTimer::Begin(DeviceTrace* trace) {
  if (trace == nullptr || trace_ != nullptr) Forget();
  trace_ = trace;
  is_on_ = trace != nullptr;
  if (!is_on_) return absl::OkStatus();
  origin_ = 1 - origin_;
  Origin& origin = origins_[origin_];
  if (origin.event == nullptr) {
    ASSIGN_OR_RETURN(origin.event, streams_.CreateTimedEvent());
  }
  origin.time = trace->clock->Now();
  RETURN_IF_ERROR(streams_.Record(origin.event.get(), Stream::kToHost));
  RETURN_IF_ERROR(streams_.Wait(Stream::kToDevice, *origin.event));
  return streams_.Wait(Stream::kCompute, *origin.event);
}

absl::StatusOr<const DeviceStreams::Event*> DeviceTimer::RecordNext(
    Stream stream) {
  if (used_events_ == events_.size()) {
    ASSIGN_OR_RETURN(auto event, streams_.CreateTimedEvent());
    events_.push_back(std::move(event));
  }
  Event* const event = events_[used_events_++].get();
  RETURN_IF_ERROR(streams_.Record(event, stream));
  return event;
}

absl::Status DeviceTimer::Time(const DeviceSpan& span,
                               absl::FunctionRef<absl::Status()> work) {
  if (!is_on_) return work();
  Timed timed;
  timed.span = span;
  timed.origin = &origins_[origin_];
  ASSIGN_OR_RETURN(timed.begin, RecordNext(span.stream));
  RETURN_IF_ERROR(work());
  ASSIGN_OR_RETURN(timed.end, RecordNext(span.stream));
  timed_.push_back(timed);
  return absl::OkStatus();
}

// The last one of each stream has come after the others.
absl::Status DeviceTimer::AwaitTimed() const {
  for (const Stream stream :
       {Stream::kCompute, Stream::kToDevice, Stream::kToHost}) {
    const auto last = std::find_if(
        timed_.rbegin(), timed_.rend(),
        [stream](const Timed& timed) { return timed.span.stream == stream; });
    if (last != timed_.rend()) RETURN_IF_ERROR(streams_.Await(*last->end));
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Time> DeviceTimer::TimeOf(const Origin& origin,
                                               const Event& event) {
  ASSIGN_OR_RETURN(const absl::Duration elapsed,
                   streams_.ElapsedTime(*origin.event, event));
  return origin.time + elapsed;
}

absl::Status DeviceTimer::Finish() {
  if (!is_on_) return absl::OkStatus();
  RETURN_IF_ERROR(AwaitTimed());
  for (const Timed& timed : timed_) {
    DeviceSpan span = timed.span;
    ASSIGN_OR_RETURN(span.begin, TimeOf(*timed.origin, *timed.begin));
    ASSIGN_OR_RETURN(span.end, TimeOf(*timed.origin, *timed.end));
    absl::Time& last_end = ends_[static_cast<size_t>(span.stream)];
    span.begin = std::max(span.begin, last_end);
    span.end = std::max(span.end, span.begin);
    last_end = span.end;
    trace_->spans.push_back(span);
  }
  Forget();
  trace_ = nullptr;
  return absl::OkStatus();
}

}  // namespace muster
