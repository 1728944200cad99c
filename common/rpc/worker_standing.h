#ifndef COMMON_RPC_WORKER_STANDING_H_
#define COMMON_RPC_WORKER_STANDING_H_

#include "proto/coordination_service.pb.h"

namespace muster {

// What StandingOf says.
inline constexpr const char* kWorkerStandings[] = {
    "trains", "drained", "lost", "finished", "awaited", "not come"};

// A worker's state in a word, as `musterctl status` has it.
inline const char* StandingOf(const WorkerState& worker) {
  if (worker.sender().incarnation() == 0) return "not come";
  if (worker.lost()) return "lost";
  if (worker.finished()) return worker.awaited() ? "awaited" : "finished";
  return worker.is_drained() ? "drained" : "trains";
}

}  // namespace muster

#endif  // COMMON_RPC_WORKER_STANDING_H_
