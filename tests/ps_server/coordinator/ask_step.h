#ifndef TESTS_PS_SERVER_COORDINATOR_ASK_STEP_H_
#define TESTS_PS_SERVER_COORDINATOR_ASK_STEP_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "ps_server/coordinator/coordinator.h"

namespace muster {

// Asks for a step whose answer does not wait. Takes the answers of all others
// that wait and need not any more.
// Errors: those of Step; Unavailable if the answer waits.
inline absl::StatusOr<StepReply> AskStep(Coordinator& coordinator,
                                         const StepRequest& request,
                                         absl::Time now) {
  constexpr uint64_t kStepId = 1;
  RETURN_IF_ERROR(coordinator.Step(request, kStepId, now));
  for (StepAnswer& answer : coordinator.TakeStepAnswers(now)) {
    if (answer.step_id == kStepId) return std::move(answer.reply);
  }
  return absl::UnavailableError("the step waits");
}

}  // namespace muster

#endif  // TESTS_PS_SERVER_COORDINATOR_ASK_STEP_H_
