#include "ps_server/coordinator/coordinator_worker.h"

#include <algorithm>

namespace muster {

bool CoordinatorWorker::IsRetired(uint64_t incarnation) const {
  return incarnation != 0 && std::find(retired.begin(), retired.end(),
                                       incarnation) != retired.end();
}

void CoordinatorWorker::Replace(const Sender& new_sender) {
  retired[num_retired % kRememberedIncarnations] = sender.incarnation();
  ++num_retired;
  sender = new_sender;
  finished = false;
  lost = false;
  unsaved = false;
  awaited = false;
  stays = false;
  reported_step = 0;
  abandoned_step = 0;
  chosen_step = 0;
  has_grant = false;
  waits_for_grant = false;
  ResetRate();
}

void CoordinatorWorker::ResetRate() {
  first_report.reset();
  last_report = absl::InfinitePast();
  active_steps = 0;
}

void CoordinatorWorker::Lose() {
  Rejoin();
  lost = true;
}

void CoordinatorWorker::Rejoin() {
  if (stays) finished = false;
  stays = false;
}

void CoordinatorWorker::PassStep(const DataPosition& next_position, double loss,
                                 bool counts, absl::Time now) {
  position = next_position;
  last_loss = loss;
  // The first report ends the first step: n reports span n - 1 steps.
  if (!first_report.has_value()) {
    first_report = now;
  } else if (counts) {
    ++active_steps;
  }
  last_report = now;
}

WorkerState CoordinatorWorker::State() const {
  WorkerState state;
  *state.mutable_sender() = sender;
  state.set_finished(finished);
  state.set_lost(lost);
  state.set_awaited(awaited);
  state.set_steps(steps);
  state.set_examples(examples);
  *state.mutable_position() = position;
  state.set_last_loss(last_loss);
  state.set_staleness_sum(staleness_sum);
  state.set_staleness_count(staleness_count);
  state.set_dropped_steps(dropped_steps);
  if (first_report.has_value()) {
    state.set_active_s(absl::ToDoubleSeconds(last_report - *first_report));
    state.set_active_steps(active_steps);
  }
  return state;
}

}  // namespace muster
