#include "worker/task/run_speed.h"

#include "common/cluster/task_id.h"
#include "worker/session/trained_rows.h"

namespace muster {
namespace {

TrainingResult::Worker DescribeWorker(const WorkerState& state) {
  TrainingResult::Worker worker;
  worker.task = TaskName(state.sender().task());
  worker.steps = state.steps();
  worker.examples = state.examples();
  worker.dropped_steps = state.dropped_steps();
  if (state.active_s() > 0) {
    worker.steps_per_s = state.active_steps() / state.active_s();
  }
  const double pushes = static_cast<double>(state.staleness_count());
  if (pushes > 0) worker.staleness = state.staleness_sum() / pushes;
  if (state.has_traffic()) worker.traffic = state.traffic();
  return worker;
}

}  // namespace

void AddSpeed(const JobState& state, const RunTimes& times,
              TrainingResult* result) {
  result->examples = state.examples();
  result->examples_repeated = state.rows().repeated();
  result->examples_skipped = state.rows().skipped();
  result->examples_left = RowsLeft(state);
  if (state.has_update()) result->update = state.update();
  for (const WorkerState& worker : state.workers()) {
    result->workers.push_back(DescribeWorker(worker));
    result->dropped_steps += worker.dropped_steps();
  }
  const double train_s = absl::ToDoubleSeconds(times.stopped - times.entered);
  if (train_s > 0) {
    result->steps_per_s = (result->global_step - result->start_step) / train_s;
    // A step of synchronous replication has the rows of several workers.
    result->examples_per_s =
        (result->examples - times.first_examples) / train_s;
  }
  result->wall_s = absl::ToDoubleSeconds(times.end - times.start);
  result->time_to_first_step_s =
      absl::ToDoubleSeconds(times.first_step - times.start);
}

}  // namespace muster
