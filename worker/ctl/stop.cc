// musterctl stop: a running job ends, with its last save.
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "worker/ctl/steering.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

absl::StatusOr<std::string> Look(const SteerReply&, const JobState& state) {
  if (state.phase() != DONE) return std::string();
  if (state.unsaved()) {
    return absl::InternalError(absl::StrCat(
        "the job has ended at step ", state.global_step(),
        ", but its last state is on no disk: the chief did not save it"));
  }
  return absl::StrCat("the job is DONE at step ", state.global_step(), ": ",
                      EscapeForLog(state.stop_reason(), 200), "\n");
}

absl::Status Stop(const VerbCall& call, VerbResult* result) {
  Wish wish;
  wish.request.set_stop(true);
  wish.waits_for = "the job to end";
  wish.look = &Look;
  wish.ends_ps = true;
  return CarryOut(call, wish, result);
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "stop", {"",
             "ends a running job, and waits until it is DONE.\n"
             "  Its workers finish their steps, the chief saves and evaluates "
             "as at any "
             "end. The same\n  training, started again, goes on from there.",
             SteeringFlags(), 0, 0, &Stop});

}  // namespace
}  // namespace muster
