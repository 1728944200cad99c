#ifndef WORKER_SESSION_STEP_MACHINE_H_
#define WORKER_SESSION_STEP_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "worker/session/session_messages.h"

namespace muster {

// Does an answer that grants a step lease its rows? Errors: Internal if it has
// none, or ranges that are none: a ps of another kind.
absl::Status CheckGrant(const StepReply& reply);

// A worker's steps in a model epoch: it asks for each, takes it, and reports it
// with the next question. It knows when a refused worker asks again, and how
// many of its steps ps task 0 has counted.
//
//   Enter --> Ask --OnAnswer: kGranted--> Take --OnTaken, OnGivenUp--> Ask
//                                          |                  ^
//                                     OnUnfinished --> Resume-'
//
// Stepping decides when; a lost peer leads to Leave at any time. Not
// thread-safe; no clock, no waiting.
class StepMachine {
 public:
  // The meaning of an answer. kReturned: it is to a step that was given up.
  enum class Answer { kGranted, kRefused, kReturned, kTooFewReplicas };

  // `longest_wait`: as SessionMachine::Options::step_wait.
  explicit StepMachine(absl::Duration longest_wait)
      : longest_wait_(longest_wait) {}

  // ---- The epoch ---------------------------------------------------------
  // The epoch that was entered; 0: none.
  int64_t epoch() const { return epoch_; }
  // The last that was; stays when a peer is lost.
  int64_t last_epoch() const { return last_epoch_; }
  // Is it the last, on the same processes? The number alone does not tell: when
  // every ps has lost its memory before the first checkpoint, epochs are
  // counted from 1 again.
  bool IsLastEpoch(int64_t model_epoch,
                   const std::vector<uint64_t>& ps_incarnations) const;

  // The next epoch is another one, whose model has `kept` steps of this task.
  // Returns how many of the acknowledged ones went with ps task 0; if another
  // ps was lost, ps task 0 knows of them, and the chief says it.
  int64_t Restore(int64_t kept, uint64_t first_ps_incarnation);
  // Nothing is granted yet.
  void Enter(int64_t model_epoch, std::vector<uint64_t> ps_incarnations);
  void Leave();

  // ---- Its steps ---------------------------------------------------------
  // The number of steps that this incarnation began.
  int64_t begun() const { return begun_; }
  bool granted() const { return granted_; }
  // It owes a report of a step that it has begun.
  bool has_report() const { return report_.step != 0 || is_unfinished(); }
  // Some shards may have its newest step, and others not.
  bool is_unfinished() const { return !unfinished_why_.empty(); }
  // For an operator, in a mode without rounds: the newest step that the
  // parameters may have, and ps task 0 may not have counted, and why; "" if
  // there is none.
  std::string DescribeUncounted() const;
  // Has the newest answer said that the job stops?
  bool knows_stop() const { return knows_stop_; }
  // Was the newest refusal of a later state than this one? Its account has the
  // step that was reported with the question.
  bool IsAheadOf(int64_t state_version) const {
    return refused_at_version_ > state_version;
  }
  absl::Time asked_at() const { return asked_at_; }
  // The time at which a refused worker asks again without news.
  absl::Time ask_again_at() const { return ask_again_at_; }
  // Is it too early to ask again in a state of this version?
  bool IsRefused(int64_t state_version, absl::Time now) const {
    return refused_at_version_ >= state_version && now < ask_again_at_;
  }

  // Reports the step before, if there is one, and asks for the next; or for the
  // end of the job, if there is a reason. REQUIRES: an epoch was entered,
  // !is_unfinished().
  SendStep Ask(int64_t state_version, absl::string_view stop_reason,
               bool may_wait, absl::Time now);
  // REQUIRES: CheckGrant(reply) is OK.
  Answer OnAnswer(const StepReply& reply, absl::Time now);

  // REQUIRES: granted().
  TrainStep Take() { return TrainStep{++begun_, grant_}; }
  void OnTaken(const StepReport& report);
  // Not all of it was pushed, nor will be.
  void OnGivenUp();
  // Not all of it was pushed: the rest is, if the epoch goes on.
  void OnUnfinished(std::string why);

 private:
  void CountAcknowledged(const StepReply& reply);
  void OnRefused(const StepReply& reply, absl::Time now);

  const absl::Duration longest_wait_;

  int64_t epoch_ = 0;
  int64_t last_epoch_ = 0;
  // The incarnations of the ps tasks in it.
  std::vector<uint64_t> last_incarnations_;

  int64_t begun_ = 0;
  bool granted_ = false;
  // The newest grant: of the step that is granted, or the one before.
  StepGrant grant_;
  // The report that is not yet acknowledged; step 0: none.
  StepReport report_;
  // "" unless the newest step is unfinished.
  std::string unfinished_why_;
  bool knows_stop_ = false;
  // After a refusal: ask again when the state changes or at this time.
  int64_t refused_at_version_ = -1;
  absl::Time ask_again_at_ = absl::InfinitePast();
  // The time of the last question, and the newest state_version that was known
  // then.
  absl::Time asked_at_ = absl::InfinitePast();
  int64_t asked_version_ = -1;
  // Steps of this task, over all its incarnations, in the last epoch.
  int64_t acknowledged_ = 0;
  // Acknowledged, but not known to be in the model; 0: none.
  int64_t undecided_step_ = 0;
};

}  // namespace muster

#endif  // WORKER_SESSION_STEP_MACHINE_H_
