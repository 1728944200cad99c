#include "worker/ctl/steering.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/base/wait_reporter.h"
#include "common/config/namespace_name.h"
#include "common/process/exit_code.h"
#include "worker/ctl/namespace_calls.h"

namespace muster {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(200);
constexpr absl::Duration kMaxWait = absl::Minutes(10);

// The ps task 0 of the state; 0 without an epoch.
uint64_t FirstPsOf(const JobState& state) {
  const auto found = state.ps_incarnations().find(0);
  return found == state.ps_incarnations().end() ? 0 : found->second;
}

// One wish on its way.
class Steering {
 public:
  Steering(const VerbCall& call, const Wish& wish, NamespaceCalls* calls)
      : call_(call), wish_(wish), calls_(*calls) {}

  // The line of the end.
  absl::StatusOr<std::string> Run(absl::Duration max_wait) {
    ASSIGN_OR_RETURN(SteerReply first, calls_.Steer(wish_.request));
    JobState state = first.state();
    const absl::Time until = clock_.Now() + max_wait;
    while (true) {
      ASSIGN_OR_RETURN(std::string line, wish_.look(first, state));
      if (!line.empty()) return line;
      if (clock_.Now() >= until) {
        return absl::UnavailableError(
            absl::StrCat("waited ", absl::FormatDuration(max_wait), " for ",
                         wish_.waits_for, "; the wish stays"));
      }
      Say();
      absl::Notification().WaitForNotificationWithTimeout(kLook);
      absl::StatusOr<JobState> next = calls_.Job(wish_.request.namespace_());
      const bool was_ending =
          state.phase() == STOPPING || state.phase() == DONE;
      if (absl::IsUnavailable(next.status()) && wish_.ends_ps && was_ending) {
        return std::string("the job has ended, and its ps tasks with it\n");
      }
      RETURN_IF_ERROR(next.status());
      if (FirstPsOf(*next) != FirstPsOf(first.state())) {
        ASSIGN_OR_RETURN(first, calls_.Steer(wish_.request));
        *next = first.state();
      }
      state = *std::move(next);
    }
  }

 private:
  void Say() {
    const std::string line = waiting_.WaitFor(wish_.waits_for, clock_.Now());
    if (!line.empty()) call_.output.reporter.Info(line);
  }

  const VerbCall& call_;
  const Wish& wish_;
  NamespaceCalls& calls_;
  const MonotonicClock clock_;
  WaitReporter waiting_;
};

}  // namespace

absl::StatusOr<absl::Duration> MaxWaitFlag(const VerbCall& call,
                                           absl::Duration otherwise) {
  const std::string text = call.Flag("max_wait");
  if (text.empty()) return otherwise;
  double seconds = 0;
  if (!absl::SimpleAtod(text, &seconds) || !(seconds >= 0 && seconds <= 1e9)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max_wait=", text, ": wanted seconds, 0 to 1000000000"));
  }
  return absl::Seconds(seconds);
}

std::vector<Verb::Flag> SteeringFlags() {
  std::vector<Verb::Flag> flags = NamespaceCalls::Flags();
  flags.push_back({"namespace", "The job's namespace; default: the nameless."});
  flags.push_back({"max_wait", "Seconds to wait for the end; default 600."});
  return flags;
}

absl::Status CarryOut(const VerbCall& call, const Wish& wish,
                      VerbResult* result) {
  Wish named = wish;
  named.request.set_namespace_(call.Flag("namespace"));
  RETURN_IF_ERROR(
      CheckNamespaceName("--namespace", named.request.namespace_()));
  ASSIGN_OR_RETURN(const absl::Duration max_wait, MaxWaitFlag(call, kMaxWait));
  ASSIGN_OR_RETURN(
      NamespaceCalls calls,
      NamespaceCalls::Create(call, NamespaceCalls::Purpose::kSteer));
  absl::StatusOr<std::string> line =
      Steering(call, named, &calls).Run(max_wait);
  if (!line.ok()) return SayIfAway(line.status(), result);
  result->out = *std::move(line);
  return absl::OkStatus();
}

}  // namespace muster
