// The verbs that steer a running job: each tells a wish, and waits until it is
// carried out.
#ifndef WORKER_CTL_STEERING_H_
#define WORKER_CTL_STEERING_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "worker/ctl/verb.h"

namespace muster {

// One wish of a verb.
struct Wish {
  SteerRequest request;
  // The wait in words: "the chief to save".
  std::string waits_for;
  // The line for stdout once the state shows that it is done; "" while it is
  // not. `first`: the answer to the wish. Errors: it will not be done.
  std::function<absl::StatusOr<std::string>(const SteerReply& first,
                                            const JobState& state)>
      look;
  // A ps task 0 that is gone once the job was STOPPING shows that it is done.
  bool ends_ps = false;
};

// --cluster and so on, --namespace and --max_wait.
std::vector<Verb::Flag> SteeringFlags();

// The value of --max_wait, else `otherwise`. Errors: InvalidArgument.
absl::StatusOr<absl::Duration> MaxWaitFlag(const VerbCall& call,
                                           absl::Duration otherwise);

// Tells the wish, looks five times a second until it is carried out, and tells
// it once more to a ps task 0 that was started anew meanwhile. A ps that does
// not answer, and --max_wait without an end, are kExitRetryable.
absl::Status CarryOut(const VerbCall& call, const Wish& wish,
                      VerbResult* result);

}  // namespace muster

#endif  // WORKER_CTL_STEERING_H_
