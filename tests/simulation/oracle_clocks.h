#ifndef TESTS_SIMULATION_ORACLE_CLOCKS_H_
#define TESTS_SIMULATION_ORACLE_CLOCKS_H_

#include <cstdint>
#include <map>
#include <utility>

#include "proto/coordination_service.pb.h"

namespace muster {

// The clocks of bounded staleness, counted anew from what the coordinator shows
// of its workers, as production's rules say: who comes, or comes back, starts
// at the slowest clock, which never falls. One start of ps task 0 in one epoch
// at a time; another one begins from nothing.
class OracleClocks {
 public:
  // Looks at every worker's count of steps.
  void Sample(uint64_t ps_incarnation, const JobState& state);
  // By how much the worker is before the slowest one; 0 if it is not there.
  int64_t LagOf(int worker) const;

  // How often workers came or went.
  int64_t changes() const { return changes_; }
  // This incarnation of a worker begins a step from values that were asked for
  // after so many changes().
  void Pulls(uint64_t incarnation, int64_t changes) {
    changes_at_pull_[incarnation] = changes;
  }
  // Nobody has come or gone since its last pull.
  bool SameWorkersSincePull(uint64_t incarnation) {
    return changes_at_pull_[incarnation] == changes_;
  }

 private:
  // One live worker's.
  struct WorkerClock {
    uint64_t incarnation = 0;
    // As the coordinator had it last.
    int64_t steps = 0;
    int64_t clock = 0;
    // Those that it reported as it came back.
    int64_t reported = 0;
  };

  int64_t SlowestClock() const;

  // The start of ps task 0 and the epoch.
  std::pair<uint64_t, int64_t> here_;
  std::map<int, WorkerClock> clocks_;
  // The count of steps of each incarnation here, as the coordinator had it
  // last, of those that were lost, too.
  std::map<uint64_t, int64_t> steps_;
  int64_t slowest_ = 0;
  // How often workers came or went, and had when an incarnation last pulled.
  int64_t changes_ = 0;
  std::map<uint64_t, int64_t> changes_at_pull_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_ORACLE_CLOCKS_H_
