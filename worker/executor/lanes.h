#ifndef WORKER_EXECUTOR_LANES_H_
#define WORKER_EXECUTOR_LANES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/executor/lane_schedule.h"
#include "worker/executor/repeating_thread.h"

namespace muster {

// Who hears of lanes that do not go on.
struct LaneWatch {
  absl::Duration period = absl::Seconds(10);
  // The lane has been at this instruction for the last `period`, and waits for
  // no other one. On a thread of its own, again after each period; null for
  // nobody.
  std::function<void(int lane, size_t instruction)> on_stalled;
};

// The rest of what lanes do where an instruction only begins work
// (LaneSchedule::ends_late). Each is called on the lane's thread; null: nothing
// is to be done.
struct LateWork {
  // Before the first instruction of a run.
  std::function<absl::Status(int lane)> begin;
  // Returns when the work of this instruction is done.
  std::function<absl::Status(size_t instruction)> finish;
  // Returns when nothing that the lane has begun is left, after its last
  // instruction, or when the run has failed.
  std::function<absl::Status(int lane, bool has_failed)> end;
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
        LaneWatch watch = {}, LateWork late = {});
  ~Lanes();

  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // Calls execute(i) for each instruction, after those that it waits for; and
  // on this thread, in the plan's order, tell(i) for each that is told of, when
  // i and all instructions before it are over: execute has returned, and where
  // it only began work, finish. Returns when every lane has ended. An error of
  // either ends all lanes; the first one is returned.
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

  // How far a lane is in its instructions.
  struct Place {
    int lane = 0;
    size_t begun = 0;
    // All before it are over.
    size_t over = 0;
    // How many of those between the two end late.
    size_t open = 0;
  };
  // So many copies may be on their way when a lane goes on: the device always
  // has work, and others soon hear of what is done.
  static constexpr size_t kMostOpen = 4;

  void RunLane(int lane);
  absl::Status RunInstructions(int lane);
  // False if there is an error.
  absl::StatusOr<bool> AwaitEvents(Place* place);
  // Lets the oldest end until at most `most_open` are open, and says so.
  absl::Status Finish(Place* place, size_t most_open);
  bool EndsLate(const Place& place, size_t i) const;
  bool IsOver(const Wanted& wanted);
  bool HasFailed();
  // False if there is an error.
  bool Await(const Wanted& wanted);
  // The same, of a lane.
  bool AwaitInLane(const Wanted& wanted, int lane);
  // Tells of lanes that stall, until this ends.
  void WatchLanes();
  // The lanes that are where they were when it was last called, by their own
  // fault; each with its instruction.
  std::vector<std::pair<int, size_t>> FindStalled()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
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
  const LateWork late_;

  absl::Mutex mu_;
  // By lane, its first instruction that is not over.
  std::vector<size_t> next_ ABSL_GUARDED_BY(mu_);
  // By lane, whether it waits for another one.
  std::vector<bool> is_waiting_ ABSL_GUARDED_BY(mu_);
  // Counts the runs; 0 between them.
  uint64_t run_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t num_runs_ ABSL_GUARDED_BY(mu_) = 0;
  // By lane, next_ when FindStalled was last called, in that run.
  std::vector<size_t> seen_ ABSL_GUARDED_BY(mu_);
  uint64_t seen_run_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status error_ ABSL_GUARDED_BY(mu_);

  // Last, so that they end before all else: one a lane.
  std::vector<std::unique_ptr<RepeatingThread>> threads_;
  // Null: nobody hears.
  std::unique_ptr<ClockThread> watcher_;
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_LANES_H_
