// musterctl stop: a running job ends, with its last save or without.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "worker/ctl/steering.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

std::string DescribeKept(const JobState& state) {
  return state.saved_step() < 0
             ? "; no checkpoint of it is known"
             : absl::StrCat("; its newest checkpoint is of step ",
                            state.saved_step());
}

absl::StatusOr<std::string> Look(const SteerReply&, const JobState& state) {
  if (state.phase() != DONE) return std::string();
  if (state.unsaved()) {
    return absl::InternalError(absl::StrCat(
        "the job has ended at step ", state.global_step(),
        ", but its last state is on no disk: the chief did not save it"));
  }
  return absl::StrCat("the job is DONE at step ", state.global_step(), ": ",
                      EscapeForLog(state.stop_reason(), 200),
                      state.discards_end() ? DescribeKept(state) : "", "\n");
}

absl::Status Stop(const VerbCall& call, VerbResult* result) {
  Wish wish;
  if (call.Flag("no_save") == "true") {
    wish.request.set_stop_without_save(true);
  } else {
    wish.request.set_stop(true);
  }
  wish.waits_for = "the job to end";
  wish.look = &Look;
  wish.ends_ps = true;
  return CarryOut(call, wish, result);
}

std::vector<Verb::Flag> Flags() {
  std::vector<Verb::Flag> flags = SteeringFlags();
  flags.push_back({"no_save",
                   "What came after the newest checkpoint is thrown away.",
                   /*is_switch=*/true});
  return flags;
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "stop", {"",
             "ends a running job, and waits until it is DONE.\n"
             "  Its workers finish their steps, the chief saves and evaluates "
             "as at any "
             "end. The same\n  training, started again, goes on from there.",
             Flags(), 0, 0, &Stop});

}  // namespace
}  // namespace muster
