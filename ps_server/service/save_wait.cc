#include "ps_server/service/save_wait.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/connection_cause.h"

namespace muster {

SaveWait::Verdict SaveWait::GiveUp(std::string reason) {
  reason_ = std::move(reason);
  return Verdict::kNotSaved;
}

SaveWait::Verdict SaveWait::OnReply(const RequestSaveReply& reply,
                                    absl::Time now) {
  if (reply.save_request() == 0 && reply.state().phase() != DONE) {
    return GiveUp(reply.reason());
  }
  save_request_ = reply.save_request();
  return OnState(reply.state(), now);
}

SaveWait::Verdict SaveWait::OnState(const JobState& state, absl::Time now) {
  if (state.phase() == DONE) {
    return state.unsaved() ? GiveUp("the job has ended without its last save")
                           : Verdict::kJobDone;
  }
  if (state.saves_answered() >= save_request_) {
    return state.save_error().empty() ? Verdict::kSaved
                                      : GiveUp(state.save_error());
  }
  if (state.phase() == INITIAL) return GiveUp("the model is being loaded anew");
  if (now >= give_up_) {
    return GiveUp(state.save_requests() < save_request_
                      ? "steps or the end of the job took too long"
                      : "the chief did not save in time");
  }
  return Verdict::kWait;
}

SaveWait::Verdict SaveWait::Confirm(const JobState& state, absl::Time now) {
  const Verdict verdict = OnState(state, now);
  return verdict == Verdict::kWait ? GiveUp("ps task 0 was started anew")
                                   : verdict;
}

SaveWait::Verdict SaveWait::OnFailure(const absl::Status& status) {
  return GiveUp(absl::StrCat("/job:ps/task:0 does not answer: ",
                             ConnectionCause(status.message())));
}

}  // namespace muster
