#ifndef PS_SERVER_COORDINATOR_COORDINATOR_WORKER_H_
#define PS_SERVER_COORDINATOR_COORDINATOR_WORKER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "proto/training.pb.h"

namespace muster {

// What ps task 0 knows of one worker (or chief) task. A value; Coordinator
// owns the rules.
struct CoordinatorWorker {
  // The largest position that is taken from outside.
  static constexpr size_t kMaxPositionBytes = 256;
  // The last incarnations that a newer one replaced; their messages are
  // fenced.
  static constexpr int kRememberedIncarnations = 8;

  Sender sender;
  bool registered = false;
  // The ClusterSpec makes this task the chief.
  bool may_be_chief = false;
  bool finished = false;
  bool lost = false;
  // It has finished, but could not save the model; another start of it is
  // waited for, which may.
  bool unsaved = false;
  bool awaited = false;
  // It has finished, but is there until the chief has saved.
  bool stays = false;
  absl::Time last_heard = absl::InfinitePast();

  // Of the current incarnation: the newest step that was reported, the newest
  // that was given up, and whether the next one was granted.
  int64_t reported_step = 0;
  int64_t abandoned_step = 0;
  // Synchronous replication: the newest step that is in an update.
  int64_t chosen_step = 0;
  bool has_grant = false;
  // It was told to wait for a grant and watches for a change.
  bool waits_for_grant = false;
  // In this model epoch; and the counted steps after the first report.
  std::optional<absl::Time> first_report;
  absl::Time last_report = absl::InfinitePast();
  int64_t active_steps = 0;

  // Of the model epoch, over all incarnations.
  int64_t steps = 0;
  int64_t examples = 0;
  // Carried unread, as the worker or the manifest says it.
  DataPosition position;
  double last_loss = 0;
  int64_t staleness_sum = 0;
  int64_t staleness_count = 0;
  int64_t dropped_steps = 0;

  std::array<uint64_t, kRememberedIncarnations> retired{};
  // How many there ever were, those that the ring has forgotten included.
  int64_t num_retired = 0;

  // Takes part now: registered, heard of, not finished.
  bool IsLive() const { return registered && !lost && !finished; }
  // Is there, though it may have finished.
  bool IsThere() const { return IsLive() || stays; }
  // The job is not DONE without it.
  bool IsWaitedFor() const { return IsThere() || awaited; }
  bool IsRetired(uint64_t incarnation) const;

  // Starts a new incarnation; what the epoch counts stays.
  void Replace(const Sender& new_sender);

  // Forgets when it was active.
  void ResetRate();

  // It was not heard of for too long.
  void Lose();
  // A new epoch begins: who stays takes part again.
  void Rejoin();

  // Notes that a step is over: its rows are not taken again. `counts`: it is in
  // the model.
  void PassStep(const DataPosition& next_position, double loss, bool counts,
                absl::Time now);

  WorkerState State() const;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_COORDINATOR_WORKER_H_
