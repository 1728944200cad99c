#include "ps_server/coordinator/awaited_workers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

bool IsThere(const WorkerState& worker) {
  return worker.sender().incarnation() != 0 && !worker.lost();
}

bool IsThere(const JobState& state, const TaskKey& task) {
  return std::any_of(state.workers().begin(), state.workers().end(),
                     [&task](const WorkerState& worker) {
                       return KeyOf(worker.sender()) == task && IsThere(worker);
                     });
}

// The job's workers for which `is_one` holds.
template <typename Predicate>
std::vector<TaskKey> WorkersThat(const JobState& state, Predicate is_one) {
  std::vector<TaskKey> tasks;
  for (const WorkerState& worker : state.workers()) {
    if (is_one(worker)) tasks.push_back(KeyOf(worker.sender()));
  }
  return tasks;
}

// "" if there is nobody.
std::string NamesAndDeed(const std::vector<TaskKey>& tasks,
                         absl::string_view deed) {
  return tasks.empty() ? "" : absl::StrCat(TaskNames(tasks), " ", deed);
}

std::string DescribeMissingModel(const std::vector<TaskKey>& expected,
                                 const JobState& state) {
  // Chiefs sort before workers.
  TaskKey chief = KeyOf(state.chief());
  if (!expected.empty()) chief = expected.front();
  if (IsThere(state, chief)) {
    return NamesAndDeed({chief}, "to initialize or restore the model");
  }
  if (expected.empty()) {
    return "a chief, which is started with --task_index=0, to come and to "
           "initialize or restore the model";
  }
  std::vector<TaskKey> missing;
  for (const TaskKey& task : expected) {
    if (!IsThere(state, task)) missing.push_back(task);
  }
  return NamesAndDeed(missing, "to come");
}

// The workers that a job needs back which runs without any.
std::string DescribeAbsent(const JobState& state) {
  const bool goes_on =
      std::any_of(state.workers().begin(), state.workers().end(),
                  [](const WorkerState& worker) {
                    return IsThere(worker) && !worker.finished();
                  });
  if (goes_on) return "";
  return NamesAndDeed(
      WorkersThat(state, [](const WorkerState&) { return true; }),
      "to come back");
}

std::string DescribeUnfinished(const JobState& state) {
  const std::vector<TaskKey> unfinished =
      WorkersThat(state, [](const WorkerState& worker) {
        return IsThere(worker) && !worker.finished();
      });
  if (!unfinished.empty()) return NamesAndDeed(unfinished, "to finish");
  return NamesAndDeed(
      WorkersThat(state,
                  [](const WorkerState& worker) { return worker.awaited(); }),
      "to come back and save the model");
}

}  // namespace

std::vector<TaskKey> TrainingTasks(const ClusterDef& cluster) {
  std::vector<TaskKey> tasks;
  for (const JobDef& job : cluster.job()) {
    if (!IsTrainingJob(job.name())) continue;
    for (const auto& [index, address] : job.tasks()) {
      tasks.emplace_back(job.name(), index);
    }
  }
  std::sort(tasks.begin(), tasks.end());
  return tasks;
}

std::string DescribeAwaitedWorkers(const std::vector<TaskKey>& expected,
                                   const JobState& state, bool has_model) {
  if (state.phase() == DONE) return "";
  if (state.phase() == STOPPING) return DescribeUnfinished(state);
  if (state.phase() == INITIAL || !has_model) {
    return DescribeMissingModel(expected, state);
  }
  return DescribeAbsent(state);
}

}  // namespace muster
