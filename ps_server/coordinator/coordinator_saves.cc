// The part of Coordinator that has the model saved: before a ps stops, and
// before more is lost than one interval of saves.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "ps_server/coordinator/coordinator.h"

namespace muster {
namespace {

// Of a chief's error.
constexpr size_t kMaxErrorChars = 400;

// A chief that is there is heard of at least every 5 s, by its Watch.
constexpr absl::Duration kChiefSilence = absl::Seconds(10);

}  // namespace

std::string Coordinator::WhyNoSave(const Sender& ps) const {
  const auto known = ps_incarnations_.find(ps.task().index());
  if (phase_ == INITIAL || known == ps_incarnations_.end() ||
      known->second != ps.incarnation()) {
    return "it holds no committed model";
  }
  if (phase_ != DONE && LiveChief() == nullptr) {
    return "no chief is alive that could save";
  }
  return "";
}

absl::StatusOr<RequestSaveReply> Coordinator::RequestSave(
    const RequestSaveRequest& request, absl::Time now) {
  const Sender& ps = request.sender();
  if (ps.task().job() != "ps") {
    return absl::InvalidArgumentError(
        absl::StrCat("request save: ", TaskName(ps),
                     " is not a ps task; only a ps that stops asks"));
  }
  if (request.leaving()) listeners_.Leave(ps);
  RequestSaveReply reply;
  const std::string why_not = WhyNoSave(ps);
  if (!why_not.empty()) {
    reply.set_reason(why_not);
  } else if (request.leaving()) {
    saves_.Leave(ps.task().index());
    if (!saves_.pauses_grants()) ++state_version_;
  } else if (phase_ == RUNNING) {
    reply.set_save_request(saves_.Ask(ps.task().index(), now));
    CheckSave(now);
  } else {
    // The chief saves at the end of the job.
    reply.set_save_request(saves_.next());
  }
  *reply.mutable_state() = State();
  return reply;
}

absl::StatusOr<ReportSaveReply> Coordinator::ReportSave(
    const ReportSaveRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckLease("report save", request.sender(), now));
  if (saves_.Answer(request.save_request(),
                    EscapeForLog(request.error(), kMaxErrorChars))) {
    ++state_version_;
  }
  if (request.error().empty() && committed_epoch_ != 0 &&
      request.model_epoch() == committed_epoch_ &&
      request.global_step() <= budget_.steps()) {
    unsaved_.OnSaved(request.global_step(), now);
    CheckPause(now);
  }
  return ReportSaveReply();
}

bool Coordinator::NeedsChief(absl::Time now) const {
  if (phase_ != RUNNING ||
      !unsaved_.IsSaveDue(budget_.steps() + budget_.outstanding(), now)) {
    return false;
  }
  const CoordinatorWorker* const chief = LiveChief();
  return chief == nullptr ||
         now >= chief->last_heard +
                    std::min(kChiefSilence, options_.worker_timeout);
}

void Coordinator::CheckPause(absl::Time now) {
  const bool needed = std::exchange(needs_chief_, NeedsChief(now));
  if (needed == needs_chief_) return;
  ++state_version_;
  if (needs_chief_) {
    Say(absl::StrCat("no step is granted until ", TaskName(KeyOf(chief_)),
                     " is back to save the model: ",
                     unsaved_.Describe(budget_.steps() + budget_.outstanding()),
                     "; start it again"));
  } else if (phase_ == RUNNING) {
    Say("steps are granted again");
  }
}

bool Coordinator::AwaitsLastSave() const {
  return unsaved_.saves() && !last_save_made_;
}

bool Coordinator::GivesUpLastSave(absl::Time now) {
  if (phase_ != STOPPING || !AwaitsLastSave() || LiveChief() != nullptr) {
    chief_gone_since_ = absl::InfiniteFuture();
    return false;
  }
  if (chief_gone_since_ == absl::InfiniteFuture()) {
    chief_gone_since_ = now;
    Say(absl::StrCat("the job has reached its end; waiting for ",
                     TaskName(KeyOf(chief_)),
                     " to come back and save the model: ",
                     unsaved_.Describe(budget_.steps()), "; start it again"));
  }
  // Who still has a step under way is waited for in any case.
  if (now < LastSaveDeadline() || !LiveTasks().empty()) return false;
  Say(absl::StrCat(
      "the job ends without its last save, ", TaskName(KeyOf(chief_)),
      " did not come back: ", unsaved_.Describe(budget_.steps()), " are lost"));
  return true;
}

absl::Time Coordinator::LastSaveDeadline() const {
  if (chief_gone_since_ == absl::InfiniteFuture()) return chief_gone_since_;
  const auto chief = workers_.find(KeyOf(chief_));
  // It has said that it cannot save: another start of it is waited for as long
  // as for any task.
  if (chief != workers_.end() && chief->second.unsaved) {
    return chief->second.awaited
               ? chief->second.last_heard + options_.worker_timeout
               : absl::InfinitePast();
  }
  return chief_gone_since_ + options_.max_wait;
}

void Coordinator::CheckSave(absl::Time now) {
  if (phase_ != RUNNING) return;
  if (saves_.Advance(budget_.outstanding(), now)) ++state_version_;
}

}  // namespace muster
