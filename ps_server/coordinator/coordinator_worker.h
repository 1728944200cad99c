#ifndef PS_SERVER_COORDINATOR_COORDINATOR_WORKER_H_
#define PS_SERVER_COORDINATOR_COORDINATOR_WORKER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "proto/training.pb.h"
#include "ps_server/coordinator/step_rounds.h"

namespace muster {

// A task's place in the job, as far as ps task 0 has heard.
enum class MemberState {
  // It takes part in the training.
  kActive,
  // It has finished, but is there until the chief has saved.
  kStaying,
  // It has finished and left.
  kFinished,
  // It was not heard of for too long, or has never come.
  kLost,
};

// A worker (or chief) task as ps task 0 knows it. A value; Coordinator owns the
// rules.
struct CoordinatorWorker {
  // What has come of it since this process knows the task: a restore, or a new
  // start of it, lowers nothing.
  struct Totals {
    int64_t steps = 0;
    int64_t examples = 0;
    int64_t dropped_steps = 0;
    // InfinitePast: none has been counted.
    absl::Time last_step = absl::InfinitePast();
  };

  // The last incarnations that a newer one replaced; their messages are
  // fenced.
  static constexpr int kRememberedIncarnations = 8;

  Sender sender;
  // It is a member. Who is not is kLost or kFinished: a manifest alone knows
  // it, or it was expelled.
  bool registered = false;
  MemberState state = MemberState::kLost;
  // The ClusterSpec makes this task the chief.
  bool may_be_chief = false;
  // It takes no more steps, though it is there.
  bool is_done = false;
  // An operator wants this start of it to leave.
  bool is_drained = false;
  // It has finished, but could not save the model.
  bool unsaved = false;
  // Another start of it is waited for, which may save.
  bool awaited = false;
  absl::Time last_heard = absl::InfinitePast();

  // ---- The current incarnation ---------------------------------------------
  // The newest step that was reported, and the newest that was given up.
  int64_t reported_step = 0;
  int64_t abandoned_step = 0;
  // The newest step that is in an update.
  int64_t chosen_step = 0;
  // The newest version of the state that it has watched from.
  int64_t watched_version = 0;
  // It was told to wait for a grant and watches for a change.
  bool waits_for_grant = false;
  // The reports in this model epoch, and the counted steps after the first.
  std::optional<absl::Time> first_report;
  absl::Time last_report = absl::InfinitePast();
  int64_t active_steps = 0;

  // As its Finish says.
  Traffic traffic;

  // ---- The model epoch, over all incarnations ------------------------------
  int64_t steps = 0;
  int64_t examples = 0;
  double last_loss = 0;
  int64_t staleness_sum = 0;
  int64_t staleness_count = 0;
  int64_t dropped_steps = 0;

  Totals totals;

  std::array<uint64_t, kRememberedIncarnations> retired{};
  // The count of all of them, those that the ring has forgotten included.
  int64_t num_retired = 0;

  bool IsActive() const { return state == MemberState::kActive; }
  bool TakesSteps() const { return IsActive() && !is_done; }
  // Though it may have finished.
  bool IsThere() const { return IsActive() || state == MemberState::kStaying; }
  bool HasFinished() const {
    return state == MemberState::kStaying || state == MemberState::kFinished;
  }
  // The job is not DONE without it.
  bool IsWaitedFor() const { return IsThere() || awaited; }
  bool IsRetired(uint64_t incarnation) const;

  // Makes it a member, or a new start of it, whose counts of the epoch stay.
  // `has_finished`: nothing is left for it to do.
  void Admit(const Sender& new_sender, bool has_finished);
  // No member any more: its next message is told to register.
  void Expel();

  // Takes over what a manifest says of it.
  void SetCounts(const WorkerState& saved);
  // Forgets when it was active.
  void ResetRate();

  // A step of it is over, and in the model or not.
  void CountStep(const Delivery& step, absl::Time now);
  void DropStep(const Delivery& step, absl::Time now);

  WorkerState State() const;

 private:
  void Replace(const Sender& new_sender);
  void PassStep(const Delivery& step, absl::Time now);
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_COORDINATOR_WORKER_H_
