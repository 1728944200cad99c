#include "worker/worker_positions.h"

#include <algorithm>

#include "common/cluster/task_id.h"

namespace muster {
namespace {

const WorkerPosition* Find(const CheckpointManifest& manifest,
                           const TaskId& task) {
  for (const WorkerPosition& position : manifest.workers()) {
    if (MakeTaskId(position.job(), position.index()) == task) return &position;
  }
  return nullptr;
}

int64_t SmallestPosition(const CheckpointManifest& manifest) {
  int64_t smallest = 0;
  for (int i = 0; i < manifest.workers_size(); ++i) {
    const int64_t position = manifest.workers(i).data_position();
    smallest = i == 0 ? position : std::min(smallest, position);
  }
  return smallest;
}

}  // namespace

void SavePositions(const JobState& state, CheckpointManifest* manifest) {
  int64_t examples = 0;
  for (const WorkerState& worker : state.workers()) {
    WorkerPosition* position = manifest->add_workers();
    position->set_job(worker.sender().task().job());
    position->set_index(worker.sender().task().index());
    position->set_data_position(worker.data_position());
    position->set_steps(worker.steps());
    position->set_examples(worker.examples());
    examples += worker.examples();
  }
  manifest->set_examples(examples);
}

std::vector<WorkerState> RestorePositions(const CheckpointManifest& manifest,
                                          absl::Span<const TaskId> tasks) {
  const auto is_known = [&manifest](const TaskId& task) {
    return Find(manifest, task) != nullptr;
  };
  const int64_t old_count = manifest.workers_size();
  const int64_t new_count = static_cast<int64_t>(tasks.size());
  const bool same_tasks = old_count == new_count &&
                          std::all_of(tasks.begin(), tasks.end(), is_known);
  const int64_t common_position =
      new_count == 0 ? 0 : SmallestPosition(manifest) * old_count / new_count;
  std::vector<WorkerState> workers;
  for (const TaskId& task : tasks) {
    WorkerState worker;
    *worker.mutable_sender()->mutable_task() = task;
    worker.set_data_position(common_position);
    if (const WorkerPosition* old = Find(manifest, task); old != nullptr) {
      worker.set_steps(old->steps());
      worker.set_examples(old->examples());
      if (same_tasks) worker.set_data_position(old->data_position());
    }
    workers.push_back(worker);
  }
  return workers;
}

}  // namespace muster
