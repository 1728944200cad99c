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
    slowest_ = 0;
    ++changes_;
  }
  std::map<int, WorkerClock> clocks;
  for (const WorkerState& worker : state.workers()) {
    if (worker.finished() || worker.lost()) continue;
    const int index = worker.sender().task().index();
    WorkerClock clock = clocks_[index];
    if (clock.incarnation != worker.sender().incarnation()) {
      clock = {worker.sender().incarnation(), 0, kEnters};
    } else {
      clock.clock += worker.steps() - clock.steps;
    }
    clock.steps = worker.steps();
    clocks[index] = clock;
  }
  if (clocks.size() < clocks_.size()) ++changes_;
  clocks_ = std::move(clocks);
  slowest_ = SlowestClock();
  for (auto& [index, clock] : clocks_) {
    if (clock.clock != kEnters) continue;
    clock.clock = slowest_;
    ++changes_;
  }
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
