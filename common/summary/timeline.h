#ifndef COMMON_SUMMARY_TIMELINE_H_
#define COMMON_SUMMARY_TIMELINE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// A span of time on a lane; two of one lane nest or do not touch.
struct TimelineSpan {
  int lane = 0;
  absl::string_view name;
  // Monotonic. REQUIRES: begin <= end.
  absl::Time begin;
  absl::Time end;
  // That it belongs to.
  int64_t step = 0;
  // On their way or applied; 0: none.
  int64_t bytes = 0;
  // As ProfileEvent.part.
  uint64_t part = 0;
};

// What takes the timeline of a task: a trace file, or a part of a job's
// profile.
class Timeline {
 public:
  virtual ~Timeline() = default;

  // Lanes are shown in the order of their numbers.
  virtual void NameLane(int lane, absl::string_view name) = 0;
  virtual void Add(const TimelineSpan& span) = 0;

  void AddSpan(int lane, absl::string_view name, absl::Time begin,
               absl::Time end, int64_t step) {
    Add({lane, name, begin, end, step});
  }
  // The same, with how many bytes were on their way.
  void AddTransfer(int lane, absl::string_view name, absl::Time begin,
                   absl::Time end, int64_t step, int64_t bytes) {
    Add({lane, name, begin, end, step, bytes});
  }
};

}  // namespace muster

#endif  // COMMON_SUMMARY_TIMELINE_H_
