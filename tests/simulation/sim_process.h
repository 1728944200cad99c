#ifndef TESTS_SIMULATION_SIM_PROCESS_H_
#define TESTS_SIMULATION_SIM_PROCESS_H_

#include <functional>
#include <memory>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "tests/simulation/simulator.h"
#include "worker/client/link/timer_queue.h"

namespace muster {

// The clock, the threads and the timers of one process: the simulator's, but
// while the process is stopped (SIGSTOP) nothing of it runs. What it waited for
// happens when it continues. Lives as long as the simulation.
class SimProcess : public Clock, public Timers {
 public:
  // `simulator` outlives the process.
  explicit SimProcess(Simulator* simulator) : simulator_(simulator) {}

  Simulator* simulator() const { return simulator_; }

  void Stop(absl::Time until) { stopped_until_ = until; }
  // SIGCONT before that time, or SIGKILL.
  void Continue() { stopped_until_ = absl::InfinitePast(); }
  bool stopped() const { return Now() < stopped_until_; }
  absl::Time stopped_until() const { return stopped_until_; }

  absl::Time Now() const override { return simulator_->Now(); }
  bool Await(absl::Mutex* mu, const absl::Condition& condition,
             absl::Duration timeout) const override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  std::unique_ptr<ClockThread> StartThread(
      std::function<void()> body) const override {
    return simulator_->StartThread(std::move(body));
  }
  void RunAt(absl::Time time, std::function<void()> function) override;
  // Runs `function` now or when the process continues.
  void RunAwake(const std::function<void()>& function);
  // REQUIRES: called in a thread of the simulation.
  void Sleep(absl::Duration pause) const;

 private:
  Simulator* const simulator_;
  absl::Time stopped_until_ = absl::InfinitePast();
};

}  // namespace muster

#endif  // TESTS_SIMULATION_SIM_PROCESS_H_
