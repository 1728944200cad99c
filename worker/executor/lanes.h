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
#include "absl/time/time.h"
#include "worker/executor/lane_schedule.h"
#include "worker/executor/repeating_thread.h"

namespace muster {

// Who hears of lanes that do not go on.
struct LaneWatch {
  absl::Duration period = absl::Seconds(10);
  // The lane has been at this instruction for the last `period`, and waits for
  // no other one. On the thread of Lanes::Run, again after each period.
  std::function<void(int lane, size_t instruction)> on_stalled =
      [](int /*lane*/, size_t /*instruction*/) {};
};

// Carries out the lanes of a schedule side by side, again and again: each on a
// thread of its own, the same in every run, while the caller's tells others how
// far all are. Allocates nothing in Run. One thread.
class Lanes {
 public:
  using Execute = std::function<absl::Status(size_t instruction)>;
  using Tell = absl::FunctionRef<absl::Status(size_t instruction)>;

  // `execute` is called on the lanes' threads. `told`: the instructions of
  // which others are told, rising.
  Lanes(LaneSchedule schedule, std::vector<size_t> told, Execute execute,
        LaneWatch watch = {});

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
  // On the lane's thread. False if there is an error.
  bool Await(const Wanted& wanted, int lane);
  // The same on the thread of Run, which tells of lanes that stall meanwhile.
  bool AwaitAndWatch(const Wanted& wanted);
  // Whether the lane is where it was, by its own fault.
  bool IsStalled(int lane) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return next_[lane] == seen_[lane] && !is_waiting_[lane] &&
           next_[lane] < schedule_.waits.size();
  }
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
  const LaneWatch watch_;

  // By lane, the thread of Run alone: what next_ was when it began to wait, and
  // whether the lane has stalled since.
  std::vector<size_t> seen_;
  std::vector<bool> stalled_;

  absl::Mutex mu_;
  // By lane, its first instruction that is not over.
  std::vector<size_t> next_ ABSL_GUARDED_BY(mu_);
  // By lane, whether it waits for another one.
  std::vector<bool> is_waiting_ ABSL_GUARDED_BY(mu_);
  absl::Status error_ ABSL_GUARDED_BY(mu_);

  // One a lane. Last, so that they end before all else.
  std::vector<std::unique_ptr<RepeatingThread>> threads_;
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_LANES_H_
