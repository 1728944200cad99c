#include "worker/session/dropped_step.h"

namespace muster {

bool WasDropped(const StepReport& report, const StepReply& answer) {
  if (report.round == 0 || report.abandoned) return false;
  if (report.late) return true;
  return answer.granted() && answer.token().chosen_step() < report.step;
}

}  // namespace muster
