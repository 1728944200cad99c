// musterctl save: the chief of a running job saves now.
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "worker/ctl/steering.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

absl::StatusOr<std::string> Look(const SteerReply& first,
                                 const JobState& state) {
  if (state.saves_answered() >= first.save_request()) {
    if (state.save_error().empty()) {
      return absl::StrCat("saved: step ", state.saved_step(), "\n");
    }
    return absl::InternalError(absl::StrCat(
        "the save failed: ", EscapeForLog(state.save_error(), 400)));
  }
  if (state.discards_end()) {
    return absl::FailedPreconditionError(
        "an operator ends the job without a last save");
  }
  if (state.phase() == STOPPING || state.phase() == DONE) {
    return absl::StrCat("the job is ", JobPhase_Name(state.phase()),
                        "; its last save takes the place of this one\n");
  }
  return std::string();
}

absl::Status Save(const VerbCall& call, VerbResult* result) {
  Wish wish;
  wish.request.set_save(true);
  wish.waits_for = "the chief to save";
  wish.look = &Look;
  return CarryOut(call, wish, result);
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "save",
    {"",
     "saves a running job now, and waits until the checkpoint is whole.\n"
     "  Training goes on. Several at once share one checkpoint.",
     SteeringFlags(), 0, 0, &Save});

}  // namespace
}  // namespace muster
