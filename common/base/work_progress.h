#ifndef COMMON_BASE_WORK_PROGRESS_H_
#define COMMON_BASE_WORK_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"

namespace muster {

// Where progress is shown, and by which clock.
struct ProgressOutput {
  // The plain lines, where there is no terminal.
  Reporter reporter;
  // Shows a text in the place of the one before it; "" takes it away. Null:
  // there is no terminal.
  std::function<void(absl::string_view text)> show_live;
  // Outlives those who show progress.
  const Clock* clock = SystemClock();
};

// The progress of work that may take long: done of total, rate, time left. On a
// terminal a line with a bar, from the first second on, which goes away at the
// end; elsewhere a line every 10 s:
//
//   evaluation: 12000 of 60000 rows, 1500 rows/s, 32s left
//
// Cheap enough for each batch, and AddRow for each row. One thread.
//
//   WorkProgress progress(output);
//   progress.Begin({"evaluation", data_set.num_examples()});
//   while (...) progress.Add(batch.rows);
class WorkProgress {
 public:
  struct Work {
    std::string name;
    // 0: not known.
    int64_t total = 0;
    std::string unit = "rows";
    // Counted items a unit: 1000000 bytes a "MB".
    int64_t counts_per_unit = 1;
  };

  // Shows nothing.
  WorkProgress() : WorkProgress(ProgressOutput()) {}
  // The seconds count from now on, whatever work begins.
  explicit WorkProgress(ProgressOutput output);
  ~WorkProgress() { Finish(); }
  WorkProgress(const WorkProgress&) = delete;
  WorkProgress& operator=(const WorkProgress&) = delete;

  // The work that is next; nothing of it is done.
  void Begin(Work work);
  // So much more of it is done.
  void Add(int64_t count);
  // The same of one, as one of many that take microseconds: the clock is not
  // asked each time.
  void AddRow() {
    if (++unseen_rows_ >= kRowsPerLook) Add(0);
  }
  // Takes the live line away.
  void Finish();

 private:
  static constexpr int64_t kRowsPerLook = 256;

  // "12000 of 60000 rows, 1500 rows/s, 32s left"
  std::string Describe(absl::Time now) const;
  std::string LiveLine(absl::Time now) const;

  const ProgressOutput output_;
  Work work_;
  absl::Time begun_;
  absl::Time show_at_;
  int64_t done_ = 0;
  // The rows that done_ lacks.
  int64_t unseen_rows_ = 0;
  bool is_shown_ = false;
};

// "2m10s", "45s", "3h05m"; "0s" at least.
std::string FormatLeft(absl::Duration left);

}  // namespace muster

#endif  // COMMON_BASE_WORK_PROGRESS_H_
