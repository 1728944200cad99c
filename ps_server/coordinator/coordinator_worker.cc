#include "ps_server/coordinator/coordinator_worker.h"

#include <algorithm>

namespace muster {

bool CoordinatorWorker::IsRetired(uint64_t incarnation) const {
  return incarnation != 0 && std::find(retired.begin(), retired.end(),
                                       incarnation) != retired.end();
}

void CoordinatorWorker::Admit(const Sender& new_sender, bool has_finished) {
  if (sender.incarnation() == 0) {
    // One that a manifest named counted as lost, but none was.
    sender = new_sender;
    state = MemberState::kActive;
  } else if (sender.incarnation() != new_sender.incarnation()) {
    Replace(new_sender);
  } else {
    const bool was_away = state == MemberState::kLost || !registered;
    state = was_away ? MemberState::kLost : MemberState::kActive;
  }
  if (has_finished) state = MemberState::kFinished;
  registered = true;
}

void CoordinatorWorker::Expel() {
  if (state != MemberState::kFinished) state = MemberState::kLost;
  awaited = false;
  registered = false;
}

void CoordinatorWorker::Replace(const Sender& new_sender) {
  retired[num_retired % kRememberedIncarnations] = sender.incarnation();
  ++num_retired;
  sender = new_sender;
  state = MemberState::kActive;
  is_drained = false;
  unsaved = false;
  awaited = false;
  reported_step = 0;
  abandoned_step = 0;
  chosen_step = 0;
  watched_version = 0;
  waits_for_grant = false;
  ResetRate();
}

void CoordinatorWorker::SetCounts(const WorkerState& saved) {
  steps = saved.steps();
  examples = saved.examples();
  staleness_sum = saved.staleness_sum();
  staleness_count = saved.staleness_count();
  dropped_steps = saved.dropped_steps();
}

void CoordinatorWorker::ResetRate() {
  first_report.reset();
  last_report = absl::InfinitePast();
  active_steps = 0;
}

void CoordinatorWorker::CountStep(const Delivery& step, absl::Time now) {
  chosen_step = step.step;
  ++steps;
  examples += step.examples;
  staleness_sum += step.staleness;
  ++staleness_count;
  ++totals.steps;
  totals.examples += step.examples;
  totals.last_step = now;
  // The first report ends the first step: n reports span n - 1 steps.
  if (first_report.has_value()) ++active_steps;
  PassStep(step, now);
}

void CoordinatorWorker::DropStep(const Delivery& step, absl::Time now) {
  ++dropped_steps;
  ++totals.dropped_steps;
  PassStep(step, now);
}

void CoordinatorWorker::PassStep(const Delivery& step, absl::Time now) {
  last_loss = step.loss;
  if (!first_report.has_value()) first_report = now;
  last_report = now;
}

WorkerState CoordinatorWorker::State() const {
  WorkerState result;
  *result.mutable_sender() = sender;
  result.set_finished(HasFinished());
  result.set_lost(state == MemberState::kLost || !registered);
  result.set_awaited(awaited);
  result.set_is_drained(is_drained);
  result.set_steps(steps);
  result.set_examples(examples);
  result.set_last_loss(last_loss);
  result.set_staleness_sum(staleness_sum);
  result.set_staleness_count(staleness_count);
  result.set_dropped_steps(dropped_steps);
  if (traffic.pushes() > 0) *result.mutable_traffic() = traffic;
  if (first_report.has_value()) {
    result.set_active_s(absl::ToDoubleSeconds(last_report - *first_report));
    result.set_active_steps(active_steps);
  }
  return result;
}

}  // namespace muster
