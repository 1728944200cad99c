#include "worker/dropped_step.h"

#include "common/cluster/task_id.h"

namespace muster {

bool WasDropped(const StepReport& report, const StepReply& answer,
                const TaskId& self) {
  if (report.round == 0 || report.abandoned) return false;
  if (report.late) return true;
  const StepToken& token = answer.token();
  if (!answer.granted() || token.round() != report.round + 1) return false;
  for (const ChosenStep& chosen : token.chosen()) {
    if (chosen.sender().task() == self && chosen.step() == report.step) {
      return false;
    }
  }
  return true;
}

}  // namespace muster
