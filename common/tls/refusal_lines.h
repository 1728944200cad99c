#ifndef COMMON_TLS_REFUSAL_LINES_H_
#define COMMON_TLS_REFUSAL_LINES_H_

#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"

namespace muster {

// Lines about peers that are refused, who may come again without end: the same
// line once in kWindow, and at most kMost different ones. Thread-safe.
class RefusalLines {
 public:
  static constexpr absl::Duration kWindow = absl::Seconds(10);
  static constexpr int kMost = 8;

  // `clock` outlives this.
  RefusalLines(Reporter reporter, const Clock* clock);

  void Say(absl::string_view line);

 private:
  const Reporter reporter_;
  const Clock* const clock_;

  absl::Mutex mu_;
  absl::Time window_ends_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  // Those of this window.
  std::set<std::string> said_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // COMMON_TLS_REFUSAL_LINES_H_
