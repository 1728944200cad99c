#ifndef COMMON_SUMMARY_CHROME_TRACE_H_
#define COMMON_SUMMARY_CHROME_TRACE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/summary/timeline.h"

namespace muster {

// A timeline in the JSON that chrome://tracing and ui.perfetto.dev open
// (Chrome's "Trace Event Format"). A span is an X event on a lane of a process.
// Times are microseconds of the monotonic clock, so that the traces of
// processes on one machine share their axis. Not thread-safe.
class ChromeTrace : public Timeline {
 public:
  // An end of an arrow: the innermost span there.
  struct Place {
    int64_t process_id = 0;
    int lane = 0;
    absl::Time when;
  };

  ChromeTrace() = default;
  // Of one process: its name on the page, and a number of its own.
  ChromeTrace(absl::string_view process_name, int64_t process_id);

  // Lanes and spans are this process' from now on. They are shown in the order
  // of their numbers, with the label beside the name.
  void BeginProcess(absl::string_view name, int64_t process_id,
                    absl::string_view label);

  void NameLane(int lane, absl::string_view name) override;
  void Add(const TimelineSpan& span) override;
  // `number`: of its own among the arrows.
  void AddArrow(uint64_t number, const Place& from, const Place& to);

  // The whole document.
  std::string Json() const;

 private:
  void NameProcess(absl::string_view name);
  void AddEvent(absl::string_view event);

  int64_t process_id_ = 0;
  // The elements of "traceEvents", one a line.
  std::string events_;
};

}  // namespace muster

#endif  // COMMON_SUMMARY_CHROME_TRACE_H_
