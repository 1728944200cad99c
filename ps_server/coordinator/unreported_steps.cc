#include "ps_server/coordinator/unreported_steps.h"

#include <utility>

namespace muster {

bool UnreportedSteps::IsNextOf(const CoordinatorWorker& worker,
                               const HeldStep& held, int64_t step_rows) {
  const StepCounts& counts = held.counts();
  const int64_t examples = counts.examples() - worker.examples;
  return worker.IsActive() && held.step() > worker.reported_step &&
         held.step() > worker.abandoned_step &&
         counts.steps() == worker.steps + 1 && examples >= 0 &&
         (step_rows == 0 || examples <= step_rows);
}

void UnreportedSteps::Add(const CoordinatorWorker& worker,
                          const HeldStep& held) {
  StepRequest report;
  *report.mutable_sender() = worker.sender;
  report.set_step(held.step());
  report.set_examples(held.counts().examples() - worker.examples);
  report.set_loss(worker.last_loss);
  reports_[KeyOf(worker.sender)] = std::move(report);
}

std::optional<StepRequest> UnreportedSteps::Pop(
    const CoordinatorWorker& worker) {
  auto entry = reports_.extract(KeyOf(worker.sender));
  if (entry.empty()) return std::nullopt;
  StepRequest& report = entry.mapped();
  if (report.sender().incarnation() != worker.sender.incarnation() ||
      report.step() <= worker.reported_step) {
    return std::nullopt;
  }
  return std::move(report);
}

}  // namespace muster
