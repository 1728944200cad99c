#ifndef COMMON_SUMMARY_CHROME_TRACE_H_
#define COMMON_SUMMARY_CHROME_TRACE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// A timeline in the JSON that chrome://tracing and ui.perfetto.dev open
// (Chrome's "Trace Event Format"). A span is an X event on a lane; two spans
// of one lane nest or do not touch. Times are microseconds of the monotonic
// clock, so that the traces of processes on one machine share their axis. Not
// thread-safe.
class ChromeTrace {
 public:
  // The page's name for this process, and a number of its own.
  ChromeTrace(absl::string_view process_name, int64_t process_id);

  void NameLane(int lane, absl::string_view name);

  // A span from `begin` to `end` that belongs to step `step`.
  // REQUIRES: begin <= end.
  void AddSpan(int lane, absl::string_view name, absl::Time begin,
               absl::Time end, int64_t step);
  // The same, with how many bytes were on their way.
  void AddTransfer(int lane, absl::string_view name, absl::Time begin,
                   absl::Time end, int64_t step, int64_t bytes);

  // The whole document.
  std::string Json() const;

 private:
  void Add(absl::string_view event);
  void AddSpanWith(int lane, absl::string_view name, absl::Time begin,
                   absl::Time end, absl::string_view args);

  const int64_t process_id_;
  // The elements of "traceEvents", one a line.
  std::string events_;
};

}  // namespace muster

#endif  // COMMON_SUMMARY_CHROME_TRACE_H_
