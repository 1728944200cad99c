// The part of Coordinator that has the model saved before a ps stops.
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "ps_server/coordinator.h"

namespace muster {
namespace {

// Of a chief's error.
constexpr size_t kMaxErrorChars = 400;

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
  return ReportSaveReply();
}

void Coordinator::CheckSave(absl::Time now) {
  if (phase_ != RUNNING) return;
  if (saves_.Advance(budget_.outstanding(), now)) ++state_version_;
}

}  // namespace muster
