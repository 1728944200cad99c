#ifndef PS_SERVER_COORDINATOR_STATE_VERSIONS_H_
#define PS_SERVER_COORDINATOR_STATE_VERSIONS_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"

namespace muster {

// The versions of a job's state, and which of them are told to those who wait.
// The version rises at each change. Who waits is told at once, but of members
// that come and go: of these once in kPause, however many there are, and a
// worker only where it matters to a worker. So N workers that come one after
// another cost N answers, not N^2. A value; no clock.
class StateVersions {
 public:
  static constexpr absl::Duration kPause = absl::Milliseconds(50);

  int64_t newest() const { return newest_; }
  // Those who know an older one are told: who watches the whole job, and the
  // workers but for the chief.
  int64_t told() const { return told_; }
  int64_t told_to_workers() const { return told_to_workers_; }

  // A change for all.
  void Raise(int64_t by = 1) {
    newest_ += by;
    told_ = told_to_workers_ = newest_;
    due_ = absl::InfiniteFuture();
    is_due_to_workers_ = false;
  }
  // A change of what others than the workers are shown.
  void RaiseAccount() { told_ = ++newest_; }
  // A member has come, gone, or is back.
  void RaiseForMember(bool matters_to_workers, absl::Time now) {
    ++newest_;
    is_due_to_workers_ |= matters_to_workers;
    due_ = std::max(now, last_ + kPause);
    Tick(now);
  }

  // Tells what is due.
  void Tick(absl::Time now) {
    if (now < due_) return;
    last_ = now;
    due_ = absl::InfiniteFuture();
    told_ = newest_;
    if (std::exchange(is_due_to_workers_, false)) told_to_workers_ = newest_;
  }
  // When Tick next changes something; InfiniteFuture if never.
  absl::Time NextDeadline() const { return due_; }

 private:
  int64_t newest_ = 1;
  int64_t told_ = 1;
  int64_t told_to_workers_ = 1;
  // When members were told of last, and are next.
  absl::Time last_ = absl::InfinitePast();
  absl::Time due_ = absl::InfiniteFuture();
  bool is_due_to_workers_ = false;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_STATE_VERSIONS_H_
