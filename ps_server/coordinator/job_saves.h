#ifndef PS_SERVER_COORDINATOR_JOB_SAVES_H_
#define PS_SERVER_COORDINATOR_JOB_SAVES_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/coordinator/job_record.h"
#include "ps_server/coordinator/save_requests.h"
#include "ps_server/coordinator/step_gate.h"
#include "ps_server/coordinator/unsaved_steps.h"

namespace muster {

// The saves of a job: those that ps tasks ask for before they stop, those that
// are due and have no chief to make them, and the last. Decides for which of
// them the steps pause. Not thread-safe.
class JobSaves {
 public:
  // As a round is held: a chief that dies in between freezes nobody.
  static constexpr absl::Duration kLongestCut = absl::Seconds(1);

  // `job` outlives it.
  explicit JobSaves(JobRecord& job) : job_(job) {}

  // ---- The job's phases ----------------------------------------------------
  // Errors: as UnsavedSteps::Start.
  absl::Status Start(const CommitEpochRequest& commit, absl::Time now) {
    return unsaved_.Start(commit, now);
  }
  // Without an epoch there is nothing to save.
  void Clear();
  // Nobody waits for the last save any more.
  void StopAwaitingChief() { chief_gone_since_ = absl::InfiniteFuture(); }
  // Another start of the chief says itself what takes too long.
  void OnNewChief(absl::Time now) { unsaved_.OnOverdue("", now); }
  // The chief has finished, and has nothing more to save.
  void OnLastSave() { unsaved_.OnLastSave(); }
  bool awaits_last_save() const { return unsaved_.awaits_last_save(); }
  std::string DescribeUnsaved() const {
    return unsaved_.Describe(job_.budget().steps());
  }
  void AddTo(JobState& state) const;
  // The newest checkpoint, for GetJobState.
  void AddSavedTo(JobState& state, absl::Time now) const;

  // ---- Saves that ps tasks ask for -----------------------------------------
  // The reply but for the state. With a save_request a save may be due now.
  RequestSaveReply Ask(const RequestSaveRequest& request, absl::Time now);
  // An operator asks for a save now: the number that answers it. Errors:
  // FailedPrecondition if nobody will save.
  absl::StatusOr<int64_t> AskByOperator();
  void Report(const ReportSaveRequest& request, absl::Time now);
  // Raises a save that is due, ends a pause that is over. `others_grants`: the
  // steps under way, but the chief's.
  void Advance(int64_t others_grants, absl::Time now);
  // When Advance, or CheckPause, wants to be called at the latest.
  absl::Time NextDeadline() const {
    return std::min(requests_.NextDeadline(), held_until_);
  }

  // ---- Cuts ----------------------------------------------------------------
  // The chief cuts the shards: if `holds`, no step is granted until ReleaseCut,
  // for kLongestCut at most.
  void BeginCut(bool holds, absl::Time now);
  void ReleaseCut();

  // ---- The pause of steps --------------------------------------------------
  StepPause pause() const;
  // Why they pause. REQUIRES: they do.
  StepWait ExplainPause() const;
  // Begins or ends the pause of grants until the chief is back, and ends that
  // of a cut that is over.
  void CheckPause(absl::Time now);

  // ---- The last save -------------------------------------------------------
  // The chief that would make it does not come back.
  bool GivesUpLastSave(absl::Time now);
  // When it gives up; InfiniteFuture while there is a chief.
  absl::Time LastSaveDeadline() const;

 private:
  // Why a ps need not wait for a save; "" if it should.
  std::string WhyNoSave(const Sender& ps) const;
  // Would further steps be lost, with nobody there to save them, or a save that
  // does not end?
  bool NeedsChief(absl::Time now) const;
  int64_t StepsWithGrants() const;

  bool IsCutting() const { return held_until_ < absl::InfiniteFuture(); }

  JobRecord& job_;
  SaveRequests requests_;
  UnsavedSteps unsaved_;
  // No step is granted until the chief is back.
  bool needs_chief_ = false;
  // None before, while the chief cuts the shards; InfiniteFuture: it does not.
  absl::Time held_until_ = absl::InfiniteFuture();
  // The time since which the last save waits for a chief that is gone;
  // InfiniteFuture if it does not.
  absl::Time chief_gone_since_ = absl::InfiniteFuture();
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_JOB_SAVES_H_
