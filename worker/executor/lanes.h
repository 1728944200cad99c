#ifndef WORKER_EXECUTOR_LANES_H_
#define WORKER_EXECUTOR_LANES_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "worker/executor/lane_schedule.h"
#include "worker/executor/repeating_thread.h"

namespace muster {

// Carries out the lanes of a schedule side by side, again and again: each on a
// thread of its own, the same in every run, while the caller's tells others how
// far all are. Allocates nothing in Run. One thread.
class Lanes {
 public:
  using Execute = std::function<absl::Status(size_t instruction)>;
  using Tell = absl::FunctionRef<absl::Status(size_t instruction)>;

  // `execute` is called on the lanes' threads. `told`: the instructions of
  // which others are told, rising.
  Lanes(LaneSchedule schedule, std::vector<size_t> told, Execute execute);

  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // Calls execute(i) for each instruction, after those that it waits for; and
  // on this thread, in the plan's order, tell(i) for each that is told of, when
  // execute has returned for i and all instructions before it. Returns when
  // every lane has ended. An error of either ends all lanes; the first one is
  // returned.
  absl::Status Run(Tell tell);

 private:
  // What somebody waits for: that an instruction is over in its lane, or all up
  // to it are in every lane.
  struct Wanted {
    const Lanes& lanes;
    size_t instruction = 0;
    // -1: every one.
    int lane = -1;
    bool IsOver() const ABSL_SHARED_LOCKS_REQUIRED(lanes.mu_);
  };

  void RunLane(int lane);
  // False if there is an error.
  bool Await(const Wanted& wanted);
  // The next instruction of the lane from its i-th on; behind all if there is
  // none.
  size_t Next(int lane, size_t i) const {
    const std::vector<size_t>& instructions = schedule_.lanes[lane];
    return i < instructions.size() ? instructions[i] : schedule_.waits.size();
  }
  void Fail(const absl::Status& status);

  // Constant after construction.
  const LaneSchedule schedule_;
  const std::vector<size_t> told_;
  const Execute execute_;

  absl::Mutex mu_;
  // By lane, its first instruction that is not over.
  std::vector<size_t> next_ ABSL_GUARDED_BY(mu_);
  absl::Status error_ ABSL_GUARDED_BY(mu_);

  // One a lane. Last, so that they end before all else.
  std::vector<std::unique_ptr<RepeatingThread>> threads_;
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_LANES_H_
