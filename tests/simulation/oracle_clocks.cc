#include "tests/simulation/oracle_clocks.h"

#include <algorithm>
#include <limits>

namespace muster {
namespace {

// The clock of a worker that has just come.
constexpr int64_t kEnters = std::numeric_limits<int64_t>::max();

}  // namespace

void OracleClocks::Sample(uint64_t ps_incarnation, const JobState& state) {
  const std::pair<uint64_t, int64_t> here = {ps_incarnation,
                                             state.model_epoch()};
  if (here != here_) {
    here_ = here;
    clocks_.clear();
    steps_.clear();
    slowest_ = 0;
    ++changes_;
  }
  std::map<int, WorkerClock> clocks;
  for (const WorkerState& worker : state.workers()) {
    if (worker.finished() || worker.lost()) continue;
    const int index = worker.sender().task().index();
    WorkerClock clock = clocks_[index];
    if (clock.incarnation != worker.sender().incarnation()) {
      // A lost worker may come back with the report of a step.
      const auto before = steps_.find(worker.sender().incarnation());
      const int64_t reported =
          before == steps_.end() ? 0 : worker.steps() - before->second;
      clock = {worker.sender().incarnation(), 0, kEnters, reported};
    } else {
      clock.clock += worker.steps() - clock.steps;
    }
    clock.steps = worker.steps();
    clocks[index] = clock;
  }
  if (clocks.size() < clocks_.size()) ++changes_;
  clocks_ = std::move(clocks);
  for (const WorkerState& worker : state.workers()) {
    steps_[worker.sender().incarnation()] = worker.steps();
  }
  slowest_ = SlowestClock();
  for (auto& [index, clock] : clocks_) {
    if (clock.clock != kEnters) continue;
    clock.clock = slowest_ + clock.reported;
    ++changes_;
  }
  slowest_ = SlowestClock();
}

int64_t OracleClocks::LagOf(int worker) const {
  const auto clock = clocks_.find(worker);
  return clock == clocks_.end() ? 0 : clock->second.clock - slowest_;
}

// The slowest of those that do not enter just now.
int64_t OracleClocks::SlowestClock() const {
  int64_t slowest = kEnters;
  for (const auto& [index, clock] : clocks_) {
    slowest = std::min(slowest, clock.clock);
  }
  return slowest == kEnters ? slowest_ : slowest;
}

}  // namespace muster
