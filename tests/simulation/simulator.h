#ifndef TESTS_SIMULATION_SIMULATOR_H_
#define TESTS_SIMULATION_SIMULATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "tests/simulation/fiber.h"
#include "tests/simulation/running_hash.h"
#include "worker/client/link/timer_queue.h"

namespace muster {

// Virtual time, and everything that happens in it: the threads that production
// code starts (fibers here) and functions that run at a time. Time passes only
// when every thread waits. What runs next is a function of what ran before, so
// one seed always gives one run. One real thread.
class Simulator : public Clock, public Timers {
 public:
  // With `verbose`, notes are printed as they come.
  explicit Simulator(bool verbose);
  // REQUIRES: every thread has ended.
  ~Simulator() override;

  absl::Time Now() const override { return now_; }
  bool Await(absl::Mutex* mu, const absl::Condition& condition,
             absl::Duration timeout) const override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  std::unique_ptr<ClockThread> StartThread(
      std::function<void()> body) const override;
  void RunAt(absl::Time time, std::function<void()> function) override;

  void RunAfter(absl::Duration pause, std::function<void()> function) {
    RunAt(now_ + pause, std::move(function));
  }
  // Lets time pass. REQUIRES: called in a thread of the simulation.
  void Sleep(absl::Duration pause) const;

  // Runs what is due until `done`; false if `until` has come before, if nothing
  // can ever happen again, or if threads run on and on without a wait.
  bool RunUntil(const std::function<bool()>& done, absl::Time until);

  // Some thread has not ended.
  bool has_threads() const { return !threads_.empty(); }

  // One event of the run's history.
  void Note(absl::string_view what, int64_t a = 0, int64_t b = 0, int64_t c = 0,
            int64_t d = 0);
  // A text for whoever reads the history; no event of it, so that the words of
  // a line can change and the history stays the same.
  void NoteText(absl::string_view who, absl::string_view text);
  // The hash of all events so far: two runs with one hash were the same.
  uint64_t history() const { return history_.value(); }
  absl::Duration elapsed() const { return now_ - Start(); }

 private:
  struct Thread;
  class Handle;

  static absl::Time Start() { return absl::UnixEpoch() + absl::Hours(1000); }
  // Runs every thread that need not wait. Returns whether there was one.
  bool RunReadyThreads() const;
  // Goes to the next event or timeout, not beyond `until`.
  bool Advance(absl::Time until);
  bool StepOnce(absl::Time until);

  const bool verbose_;
  absl::Time now_ = Start();
  RunningHash history_;

  // mutable: production starts threads and waits through a const Clock.
  mutable std::vector<std::shared_ptr<Thread>> threads_;
  mutable Thread* current_ = nullptr;

  uint64_t next_event_ = 0;
  std::map<std::pair<absl::Time, uint64_t>, std::function<void()>> events_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_SIMULATOR_H_
