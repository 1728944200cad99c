#ifndef COMMON_BASE_WAIT_REPORTER_H_
#define COMMON_BASE_WAIT_REPORTER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// When to say for whom a task waits: after 1 s, then every 10 s. Knows no
// clock. Not thread-safe.
class WaitReporter {
 public:
  // At `now` the task waits for `what`. Returns the line that is due now, ""
  // if none is.
  std::string WaitFor(absl::string_view what, absl::Time now);

  // It has waited since then, and what was due until `now` was said elsewhere.
  // Does nothing if it has waited for longer.
  void TakeOver(absl::Time since, absl::Time now);

  // Not waiting any more. True if a line was said, so that its end can be.
  bool Stop();

  // InfiniteFuture while not waiting.
  absl::Time since() const { return since_; }
  // When the next line is due; InfiniteFuture while not waiting.
  absl::Time next_due() const { return say_at_; }

 private:
  absl::Time since_ = absl::InfiniteFuture();
  absl::Time say_at_ = absl::InfiniteFuture();
  bool said_ = false;
};

}  // namespace muster

#endif  // COMMON_BASE_WAIT_REPORTER_H_
