#ifndef PS_SERVER_COORDINATOR_STEP_ROUNDS_H_
#define PS_SERVER_COORDINATOR_STEP_ROUNDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "proto/parameter_service.pb.h"
#include "proto/row_ledger.pb.h"
#include "proto/training.pb.h"
#include "ps_server/caller/task_name.h"

namespace muster {

// A worker's report that every shard holds the gradient of its step.
struct Delivery {
  Sender sender;
  int64_t step = 0;
  int64_t examples = 0;
  double loss = 0;
  int64_t staleness = 0;
  // The rows that are done with it; none before it is chosen.
  RowLease rows;

  static Delivery Of(const StepRequest& report);
};

// Steps of which is known what becomes of them.
struct DecidedSteps {
  // In the model; in order of the task, so that the order of a sum does not
  // depend on who was faster.
  std::vector<Delivery> chosen;
  std::vector<Delivery> dropped;
};

// Synchronous replication at ps task 0. Round r makes global step r. It is
// opened with a grant of the job's budget; workers join it with a token and
// deliver; it closes at the first `Needed` deliveries of distinct tasks, and
// its chosen steps travel with the tokens of round r + 1.
//
//   needed = min(replicas_to_aggregate, members), never below min_replicas
//
// (members alone, if replicas_to_aggregate is 0)
// where the members are the live workers that have not finished, who has
// delivered (its gradient is whole, whatever became of the worker since), and,
// until `assembled_at`, those of total_replicas that have never come: a job
// does not begin with whoever is fastest to start. A round closes only while
// somebody is live, and not while it is held.
//
// A pure value: no clock inside. `live` is always the set of tasks that take
// part now. Not thread-safe.
class StepRounds {
 public:
  // The longest hold: a chief that dies meanwhile stops nobody for longer.
  static constexpr absl::Duration kLongestHold = absl::Seconds(1);

  // Errors: InvalidArgument naming the field, unless 1 <=
  // replicas_to_aggregate <= total_replicas and 0 <= min_replicas <=
  // replicas_to_aggregate, or both of the former are 0: whoever comes.
  static absl::Status Check(const SyncReplication& spec);

  // `known` have come before, and are members while they are live only.
  // REQUIRES: Check(spec) is OK.
  StepRounds(const SyncReplication& spec, int64_t global_step,
             std::set<TaskKey> known = {},
             absl::Time assembled_at = absl::InfinitePast());

  // The round that is open, or opened next: global step + 1.
  int64_t round() const { return round_; }
  bool is_open() const { return is_open_; }
  // The token that a worker, or a cut, of this round needs.
  StepToken token() const;

  // REQUIRES: not open.
  void Open() { is_open_ = true; }
  // Nobody is in the open round: neither joined nor delivered.
  bool IsIdle() const;
  // REQUIRES: IsIdle().
  void Retract() { is_open_ = false; }

  // `task` has the token of the open round and will deliver.
  void Join(const TaskKey& task);
  bool HasJoined(const TaskKey& task) const;
  // It will not; what it has delivered stays.
  void Leave(const TaskKey& task);
  // Nor does its delivery count any more: the task was started anew and takes
  // the same rows again.
  void Withdraw(const TaskKey& task);
  // Returns false, and changes nothing, if the task has delivered in this
  // round. REQUIRES: open.
  bool Deliver(Delivery delivery);
  bool HasDelivered(const TaskKey& task) const;

  // Nothing closes for kLongestHold, or until Release.
  void Hold(absl::Time now) { held_until_ = now + kLongestHold; }
  void Release() { held_until_ = absl::InfinitePast(); }
  // REQUIRES: is_held().
  absl::Time held_until() const { return held_until_; }
  bool is_held() const { return held_until_ != absl::InfinitePast(); }
  // Ends a hold that is over and closes the open round if it can be; the next
  // one is not open yet. `without_rows` of those who have not delivered have
  // nothing to train on.
  std::optional<DecidedSteps> TryClose(const std::set<TaskKey>& live,
                                       absl::Time now,
                                       int64_t without_rows = 0);

  // Replicas of total_replicas that have not come and are still waited for.
  int64_t Awaited() const;
  bool HasCome(const TaskKey& task) const { return known_.count(task) != 0; }
  // The time from which they are not; REQUIRES: Awaited() > 0.
  absl::Time assembled_at() const { return assembled_at_; }

  int64_t Needed(const std::set<TaskKey>& live, int64_t without_rows = 0) const;
  // Live tasks that have not delivered in the round.
  std::vector<TaskKey> Missing(const std::set<TaskKey>& live) const;
  // So many workers that no round can close.
  bool TooFew(const std::set<TaskKey>& live) const;
  // The same, and nobody has the step who may still deliver it.
  bool IsStuck(const std::set<TaskKey>& live) const {
    return joined_.empty() && TooFew(live);
  }
  // The most gradients of the next update, those of whom is waited for
  // included; 0 if no round can close.
  int64_t GradientsOfUpdate(const std::set<TaskKey>& live) const;
  // Notes who is there.
  void SeeLive(const std::set<TaskKey>& live, absl::Time now);
  // There are too few of those whom SeeLive has seen last, were enough before,
  // and the job is to end for that.
  bool must_end() const { return must_end_; }
  int64_t min_replicas() const { return min_replicas_; }

 private:
  // The members who have come.
  int64_t Present(const std::set<TaskKey>& live) const;

  const int64_t replicas_to_aggregate_;  // the largest number for all
  const int64_t total_replicas_;
  const int64_t min_replicas_;
  const bool ends_when_too_few_;

  std::set<TaskKey> known_;
  absl::Time assembled_at_;

  int64_t round_;
  bool is_open_ = false;
  std::set<TaskKey> joined_;
  std::vector<Delivery> deliveries_;  // in the order in which they came
  std::set<TaskKey> delivered_;       // their tasks
  // The steps chosen in round_ - 1.
  std::vector<ChosenStep> last_chosen_;
  absl::Time held_until_ = absl::InfinitePast();
  bool had_enough_ = false;
  bool must_end_ = false;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_STEP_ROUNDS_H_
