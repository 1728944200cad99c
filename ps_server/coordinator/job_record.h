#ifndef PS_SERVER_COORDINATOR_JOB_RECORD_H_
#define PS_SERVER_COORDINATOR_JOB_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/coordinator_options.h"
#include "ps_server/coordinator/job_evaluations.h"
#include "ps_server/coordinator/members.h"
#include "ps_server/coordinator/model_epoch.h"
#include "ps_server/coordinator/row_leases.h"
#include "ps_server/coordinator/state_versions.h"
#include "ps_server/coordinator/step_budget.h"

namespace muster {

// The longest text kept of a reason that a task gives.
inline constexpr size_t kMaxReasonChars = 200;
// A task that is there is heard of at least every 5 s, by its Watch: one that
// was silent for so long may be gone.
inline constexpr absl::Duration kChiefSilence = absl::Seconds(10);

// Do both name the same start of a task?
bool SameProcess(const Sender& a, const Sender& b);

// The job as all parts of its coordinator know it: phase and version of its
// state, members, epoch, counted steps, rows, evaluations, the chief lease, and
// the news for the operator. Not thread-safe; no clock.
class JobRecord {
 public:
  // Between two calls of ReleaseLines.
  static constexpr size_t kMaxLines = 1024;

  explicit JobRecord(CoordinatorOptions options)
      : options_(std::move(options)) {}
  JobRecord(const JobRecord&) = delete;
  JobRecord& operator=(const JobRecord&) = delete;

  const CoordinatorOptions& options() const { return options_; }
  Members& members() { return members_; }
  const Members& members() const { return members_; }
  ModelEpoch& epoch() { return epoch_; }
  const ModelEpoch& epoch() const { return epoch_; }
  StepBudget& budget() { return budget_; }
  const StepBudget& budget() const { return budget_; }
  RowLeases& leases() { return leases_; }
  const RowLeases& leases() const { return leases_; }
  JobEvaluations& evaluations() { return evaluations_; }
  const JobEvaluations& evaluations() const { return evaluations_; }

  // The version rises with each change that those who watch are to see.
  int64_t version() const { return versions_.newest(); }
  void RaiseVersion(int64_t by = 1) { versions_.Raise(by); }
  StateVersions& versions() { return versions_; }
  const StateVersions& versions() const { return versions_; }

  JobPhase phase() const { return phase_; }
  void SetPhase(JobPhase phase);
  // Why the job stops; "" if it does not.
  const std::string& stop_reason() const { return stop_reason_; }
  void Stop(std::string reason);
  // "epochs, at step 20". REQUIRES: STOPPING or DONE.
  std::string DescribeEnd() const;
  void ClearStop() { stop_reason_.clear(); }

  // The holder of the chief lease; incarnation 0 if nobody has it.
  const Sender& chief() const { return chief_; }
  void GiveLease(const Sender& chief) { chief_ = chief; }
  // The record of the holder, if it is alive; else null.
  const CoordinatorWorker* LiveChief() const;

  // A line for the operator.
  void Say(std::string line);
  std::vector<std::string> ReleaseLines() { return std::exchange(lines_, {}); }

 private:
  const CoordinatorOptions options_;
  Members members_;
  ModelEpoch epoch_;
  StepBudget budget_;
  RowLeases leases_;
  JobEvaluations evaluations_;

  StateVersions versions_;
  JobPhase phase_ = INITIAL;
  std::string stop_reason_;
  Sender chief_;
  // At most kMaxLines: those beyond are not kept.
  std::vector<std::string> lines_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_JOB_RECORD_H_
