#ifndef WORKER_STEP_ACKNOWLEDGED_STEP_H_
#define WORKER_STEP_ACKNOWLEDGED_STEP_H_

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "worker/session/session_messages.h"
#include "worker/step/step_exchange.h"

namespace muster {

// The report of a step whose gradients every shard has acknowledged; `now` is
// its end.
inline StepReport Acknowledged(StepReport report, StepResult result,
                               absl::Time now) {
  report.times.pushed = std::max(report.times.decided, result.pushed);
  report.times.sends = std::move(result.sends);
  report.times.ended = now;
  report.staleness = result.staleness;
  report.late = result.late;
  return report;
}

}  // namespace muster

#endif  // WORKER_STEP_ACKNOWLEDGED_STEP_H_
