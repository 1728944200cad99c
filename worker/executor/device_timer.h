#ifndef WORKER_EXECUTOR_DEVICE_TIMER_H_
#define WORKER_EXECUTOR_DEVICE_TIMER_H_

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/backend/device_streams.h"
#include "worker/executor/device_trace.h"

namespace muster {

// Times what a device does in the steps of which somebody wants a trace; in the
// others it does nothing, has no timed event and allocates nothing.
//
// The device's times are put on the host's axis at one place, the step's
// origin: a timed event that Begin records in kToHost, where nothing is left by
// then, and for which the other two streams wait. It is taken to come when the
// host is about to record it, and all else is where the device saw it after
// that. So a span is too early by what the device takes to hear of the origin
// (some microseconds, the same for all spans of a step), never before Begin,
// and never after Finish. Where the origins of two steps differ in that, a span
// begins when the one before it in its stream ends.
//
// One thread at a time, after MakeCurrent.
class DeviceTimer {
 public:
  using Stream = DeviceStreams::Stream;

  // `streams` outlives the timer.
  explicit DeviceTimer(DeviceStreams* streams) : streams_(*streams) {}

  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;

  // A step begins. Up to Finish `trace` is the timer's; null: nobody wants one.
  // Forgets what was timed of a step that was not finished. REQUIRES:
  // nothing is in kToHost. Errors: those of DeviceStreams.
  absl::Status Begin(DeviceTrace* trace);

  // Does `work`, which puts something into span.stream, and notes when that
  // begins and ends, if the last Begin had a trace. After Finish, too: then the
  // next step's trace gets it. Errors: those of `work` and of DeviceStreams.
  absl::Status Time(const DeviceSpan& span,
                    absl::FunctionRef<absl::Status()> work);

  // Appends what was timed to the trace, when it has come. Errors: those of
  // DeviceStreams.
  absl::Status Finish();

 private:
  using Event = DeviceStreams::Event;

  struct Origin {
    std::unique_ptr<Event> event;
    absl::Time time;
  };
  struct Timed {
    DeviceSpan span;
    const Event* begin = nullptr;
    const Event* end = nullptr;
    const Origin* origin = nullptr;
  };

  void Forget();
  absl::StatusOr<const Event*> RecordNext(Stream stream);
  absl::Status AwaitTimed() const;
  absl::StatusOr<absl::Time> TimeOf(const Origin& origin, const Event& event);

  DeviceStreams& streams_;
  bool is_on_ = false;
  // Null between Finish and Begin.
  DeviceTrace* trace_ = nullptr;
  // This step's and, for what was timed after it, that of the one before.
  std::array<Origin, 2> origins_;
  size_t origin_ = 0;
  // The first `used_events_` are recorded.
  std::vector<std::unique_ptr<Event>> events_;
  size_t used_events_ = 0;
  std::vector<Timed> timed_;
  // By stream, when its last span ended.
  std::array<absl::Time, 3> ends_ = {absl::InfinitePast(), absl::InfinitePast(),
                                     absl::InfinitePast()};
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_DEVICE_TIMER_H_
