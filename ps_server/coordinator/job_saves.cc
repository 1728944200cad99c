#include "ps_server/coordinator/job_saves.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/cluster/task_id.h"

namespace muster {
namespace {

// The longest text kept of an error of the chief.
constexpr size_t kMaxErrorChars = 400;

}  // namespace

void JobSaves::Clear() {
  requests_.Clear();
  unsaved_.Clear();
  held_until_ = absl::InfiniteFuture();
}

void JobSaves::AddTo(JobState& state) const {
  state.set_save_requests(requests_.raised());
  state.set_saves_answered(requests_.answered());
  state.set_save_error(requests_.error());
  state.set_unsaved((job_.phase() == STOPPING || job_.phase() == DONE) &&
                    unsaved_.awaits_last_save());
}

void JobSaves::AddSavedTo(JobState& state, absl::Time now) const {
  const std::optional<absl::Time> saved = unsaved_.saved_at();
  state.set_saved_step(saved.has_value() ? unsaved_.saved_step() : -1);
  state.set_saved_s(saved.has_value() ? absl::ToDoubleSeconds(now - *saved)
                                      : -1);
}

int64_t JobSaves::StepsWithGrants() const {
  return job_.budget().steps() + job_.budget().outstanding();
}

// ---- Saves that ps tasks ask for ------------------------------------------

std::string JobSaves::WhyNoSave(const Sender& ps) const {
  if (job_.phase() == INITIAL || !job_.epoch().IsHeldBy(ps)) {
    return "it holds no committed model";
  }
  if (job_.phase() != DONE && job_.LiveChief() == nullptr) {
    return "no chief is alive that could save";
  }
  return "";
}

RequestSaveReply JobSaves::Ask(const RequestSaveRequest& request,
                               absl::Time now) {
  const Sender& ps = request.sender();
  RequestSaveReply reply;
  std::string why_not = WhyNoSave(ps);
  if (!why_not.empty()) {
    reply.set_reason(std::move(why_not));
  } else if (request.leaving()) {
    requests_.Leave(ps.task().index());
    if (!requests_.pauses_grants()) job_.RaiseVersion();
  } else if (job_.phase() == RUNNING) {
    reply.set_save_request(requests_.Ask(ps.task().index(), now));
  } else {
    // The chief saves at the end of the job.
    reply.set_save_request(requests_.next());
  }
  return reply;
}

absl::StatusOr<int64_t> JobSaves::AskByOperator() {
  if (job_.phase() != RUNNING) {
    return absl::FailedPreconditionError(
        absl::StrCat("save: the job is ", JobPhase_Name(job_.phase()),
                     job_.phase() == INITIAL
                         ? ": no model is committed yet"
                         : ": the chief makes its last save, or has made it"));
  }
  if (!unsaved_.saves()) {
    return absl::FailedPreconditionError(
        "save: the chief has no --train_dir, and saves nothing");
  }
  if (job_.LiveChief() == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("save: ", TaskName(KeyOf(job_.chief())),
                     ", which saves the model, is away; start it again"));
  }
  const auto [number, is_new] = requests_.Raise();
  if (is_new) job_.RaiseVersion();
  return number;
}

void JobSaves::Report(const ReportSaveRequest& request, absl::Time now) {
  if (requests_.Answer(request.save_request(),
                       EscapeForLog(request.error(), kMaxErrorChars))) {
    job_.RaiseVersion();
  }
  unsaved_.OnOverdue(EscapeForLog(request.overdue(), kMaxReasonChars), now);
  if (request.error().empty() && request.overdue().empty() &&
      job_.epoch().CheckCommitted("save", request.model_epoch()).ok() &&
      request.global_step() <= StepsWithGrants()) {
    // Some of its steps may not have been reported yet.
    unsaved_.OnSaved(std::min(request.global_step(), job_.budget().steps()),
                     now);
  }
  CheckPause(now);
}

void JobSaves::Advance(int64_t others_grants, absl::Time now) {
  if (requests_.Advance(others_grants, now)) job_.RaiseVersion();
}

// ---- Cuts -----------------------------------------------------------------

void JobSaves::BeginCut(bool holds, absl::Time now) {
  ReleaseCut();
  if (holds) held_until_ = now + kLongestCut;
}

void JobSaves::ReleaseCut() {
  if (!IsCutting()) return;
  held_until_ = absl::InfiniteFuture();
  // Who was refused a step asks again.
  if (job_.members().DoesAnyWaitForGrant()) job_.RaiseVersion();
}

// ---- The pause of steps ---------------------------------------------------

StepPause JobSaves::pause() const {
  if (requests_.pauses_grants()) return StepPause::kAll;
  return needs_chief_ || IsCutting() ? StepPause::kNewSteps : StepPause::kNone;
}

StepWait JobSaves::ExplainPause() const {
  if (requests_.pauses_grants()) {
    return {{}, "a ps task that stops to be saved and to leave"};
  }
  if (!needs_chief_) return {{KeyOf(job_.chief())}, "to cut a checkpoint"};
  return {{KeyOf(job_.chief())},
          absl::StrCat(unsaved_.overdue().empty()
                           ? "to come back and save the model"
                           : absl::StrCat("to end ", unsaved_.overdue()),
                       ": ", unsaved_.Describe(StepsWithGrants()))};
}

bool JobSaves::NeedsChief(absl::Time now) const {
  if (job_.phase() != RUNNING) return false;
  if (unsaved_.IsOverdue(now)) return true;
  if (!unsaved_.IsSaveDue(StepsWithGrants(), now)) return false;
  const CoordinatorWorker* const chief = job_.LiveChief();
  return chief == nullptr ||
         now >= chief->last_heard +
                    std::min(kChiefSilence, job_.options().worker_timeout);
}

void JobSaves::CheckPause(absl::Time now) {
  if (now >= held_until_) ReleaseCut();
  if (!unsaved_.IsOverdue(now)) unsaved_.OnOverdue("", now);
  const bool needed = std::exchange(needs_chief_, NeedsChief(now));
  if (needed == needs_chief_) return;
  job_.RaiseVersion();
  if (needs_chief_) {
    const std::string& overdue = unsaved_.overdue();
    job_.Say(absl::StrCat(
        "no step is granted until ", TaskName(KeyOf(job_.chief())),
        overdue.empty() ? " is back to save the model"
                        : absl::StrCat(" has ended ", overdue),
        ": ", unsaved_.Describe(StepsWithGrants()),
        overdue.empty() ? "; start it again"
                        : "; look at the disk of its --train_dir"));
  } else if (job_.phase() == RUNNING) {
    job_.Say("steps are granted again");
  }
}

// ---- The last save --------------------------------------------------------

bool JobSaves::GivesUpLastSave(absl::Time now) {
  if (job_.phase() != STOPPING || !unsaved_.awaits_last_save() ||
      job_.LiveChief() != nullptr) {
    StopAwaitingChief();
    return false;
  }
  const std::string chief = TaskName(KeyOf(job_.chief()));
  if (chief_gone_since_ == absl::InfiniteFuture()) {
    chief_gone_since_ = now;
    job_.Say(absl::StrCat("the job has reached its end; waiting for ", chief,
                          " to come back and save the model: ",
                          DescribeUnsaved(), "; start it again"));
  }
  // Who still has a step under way is waited for in any case.
  if (now < LastSaveDeadline() || job_.members().IsAnyActive()) return false;
  job_.Say(absl::StrCat("the job ends without its last save, ", chief,
                        " did not come back: ", DescribeUnsaved(),
                        " are lost"));
  return true;
}

absl::Time JobSaves::LastSaveDeadline() const {
  if (chief_gone_since_ == absl::InfiniteFuture()) return chief_gone_since_;
  const CoordinatorWorker* const chief =
      job_.members().Find(KeyOf(job_.chief()));
  // It has said that it cannot save: another start of it is waited for as long
  // as for any task.
  if (chief != nullptr && chief->unsaved) {
    return chief->awaited ? chief->last_heard + job_.options().worker_timeout
                          : absl::InfinitePast();
  }
  return chief_gone_since_ + job_.options().max_wait;
}

}  // namespace muster
