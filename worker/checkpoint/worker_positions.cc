#include "worker/checkpoint/worker_positions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/cluster/task_id.h"

namespace muster {
namespace {

using Positions = std::vector<WorkerPosition>;

const WorkerPosition* Find(const Positions& workers, const TaskId& task) {
  for (const WorkerPosition& worker : workers) {
    if (MakeTaskId(worker.job(), worker.index()) == task) return &worker;
  }
  return nullptr;
}

bool HadStepsOf(int64_t worker_rows, const Positions& workers) {
  return std::all_of(workers.begin(), workers.end(),
                     [worker_rows](const WorkerPosition& worker) {
                       if (worker.steps() == 0) return worker.examples() == 0;
                       return worker.examples() % worker.steps() == 0 &&
                              worker.examples() / worker.steps() == worker_rows;
                     });
}

// Gives workers whose steps were counted positions; returns what there is to
// say. `examples`: of the whole run.
std::string MakePositions(const TakenRows& rows, int64_t examples,
                          Positions* workers) {
  const int64_t step_rows =
      rows.worker_rows * static_cast<int64_t>(workers->size());
  const int64_t epoch_steps =
      step_rows == 0 ? 0 : rows.num_examples / step_rows;
  const bool is_exact =
      epoch_steps > 0 && HadStepsOf(rows.worker_rows, *workers);
  const RowPosition suggested = {
      examples / std::max<int64_t>(rows.num_examples, 1), 0};
  for (WorkerPosition& worker : *workers) {
    RowPosition position = suggested;
    if (is_exact) {
      position.epoch = worker.data_position() / epoch_steps;
      position.rows = worker.data_position() % epoch_steps * step_rows;
    }
    *worker.mutable_position() = MakeDataPosition(position, step_rows);
  }
  if (is_exact || workers->empty()) return "";
  return absl::StrCat(
      "the checkpoint, of an older version, counts steps of other rows than "
      "this training's: the data goes on at the beginning of epoch ",
      suggested.epoch, " (counted from 0), by its ", examples, " examples");
}

absl::StatusOr<RowPosition> SmallestPosition(const Positions& workers,
                                             RowOrder order) {
  std::optional<RowPosition> smallest;
  for (const WorkerPosition& worker : workers) {
    ASSIGN_OR_RETURN(const RowPosition position,
                     ReadRowPosition(worker.position(), order));
    smallest = std::min(smallest.value_or(position), position);
  }
  return smallest.value_or(RowPosition());
}

// Were their steps those of `tasks`, all together with `step_rows`?
bool HadSameSteps(const Positions& workers, absl::Span<const TaskId> tasks,
                  int64_t step_rows) {
  if (workers.size() != tasks.size()) return false;
  return std::all_of(tasks.begin(), tasks.end(), [&](const TaskId& task) {
    const WorkerPosition* const old = Find(workers, task);
    // One that has never come is at the beginning, whatever a step is.
    return old != nullptr && (old->position().kind().empty() ||
                              old->position().step_rows() == step_rows);
  });
}

}  // namespace

void SavePositions(const JobState& state, absl::Span<const TaskId> tasks,
                   CheckpointManifest* manifest) {
  for (const WorkerState& worker : state.workers()) {
    WorkerPosition* position = manifest->add_workers();
    position->set_job(worker.sender().task().job());
    position->set_index(worker.sender().task().index());
    *position->mutable_position() = worker.position();
    position->set_steps(worker.steps());
    position->set_examples(worker.examples());
  }
  const Positions known(manifest->workers().begin(), manifest->workers().end());
  for (const TaskId& task : tasks) {
    if (Find(known, task) != nullptr) continue;
    WorkerPosition* position = manifest->add_workers();
    position->set_job(task.job());
    position->set_index(task.index());
  }
  manifest->set_examples(state.examples());
}

absl::StatusOr<RestoredPositions> RestorePositions(
    const CheckpointManifest& manifest, absl::Span<const TaskId> tasks,
    const TakenRows& rows) {
  RestoredPositions restored;
  Positions saved(manifest.workers().begin(), manifest.workers().end());
  if (manifest.format_version() < kFirstFormatWithPositions) {
    restored.note = MakePositions(rows, manifest.examples(), &saved);
  }
  ASSIGN_OR_RETURN(const RowPosition smallest,
                   SmallestPosition(saved, rows.order));
  const int64_t step_rows =
      rows.worker_rows * static_cast<int64_t>(tasks.size());
  restored.start = MakeDataPosition(smallest, step_rows, rows.order);
  const bool same_steps = HadSameSteps(saved, tasks, step_rows);
  for (const TaskId& task : tasks) {
    WorkerState worker;
    *worker.mutable_sender()->mutable_task() = task;
    *worker.mutable_position() = restored.start;
    if (const WorkerPosition* old = Find(saved, task); old != nullptr) {
      worker.set_steps(old->steps());
      worker.set_examples(old->examples());
      if (same_steps) *worker.mutable_position() = old->position();
    }
    restored.workers.push_back(std::move(worker));
  }
  return restored;
}

}  // namespace muster
