#include "tests/simulation/sim_process.h"

#include <utility>

namespace muster {

bool SimProcess::Await(absl::Mutex* mu, const absl::Condition& condition,
                       absl::Duration timeout) const {
  bool holds = simulator_->Await(mu, condition, timeout);
  const bool never = false;
  while (stopped()) {
    simulator_->Await(mu, absl::Condition(&never), stopped_until_ - Now());
    holds = condition.Eval();
  }
  return holds;
}

void SimProcess::RunAt(absl::Time time, std::function<void()> function) {
  simulator_->RunAt(
      time, [this, function = std::move(function)] { RunAwake(function); });
}

void SimProcess::RunAwake(const std::function<void()>& function) {
  if (!stopped()) return function();
  RunAt(stopped_until_, function);
}

void SimProcess::Sleep(absl::Duration pause) const {
  simulator_->Sleep(pause);
  while (stopped()) simulator_->Sleep(stopped_until_ - Now());
}

}  // namespace muster
