#include "worker/hook/job_summaries.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cluster/task_id.h"
#include "common/summary/histogram.h"
#include "common/summary/summary_value.h"

namespace muster {
namespace {

// At the end only: it holds up nobody's steps.
constexpr absl::Duration kLastAnswerWait = absl::Seconds(1);

// The task's entry in `state`; all zero if it has none.
WorkerState StateOf(const TaskId& task, const JobState& state) {
  for (const WorkerState& worker : state.workers()) {
    if (worker.sender().task() == task) return worker;
  }
  return {};
}

// Adds one worker's rates; returns its examples.
int64_t AddWorker(const WorkerState& before, const WorkerState& after,
                  double seconds, Summary* summary) {
  const TaskId& task = after.sender().task();
  const std::string prefix = absl::StrCat(task.job(), "_", task.index(), "/");
  const int64_t steps = after.steps() - before.steps();
  const int64_t examples = after.examples() - before.examples();
  AddScalar(prefix + "steps_per_s", static_cast<double>(steps) / seconds,
            summary);
  AddScalar(prefix + "examples_per_s", static_cast<double>(examples) / seconds,
            summary);
  const int64_t pushes = after.staleness_count() - before.staleness_count();
  if (pushes > 0) {
    const int64_t sum = after.staleness_sum() - before.staleness_sum();
    AddScalar(prefix + "staleness",
              static_cast<double>(sum) / static_cast<double>(pushes), summary);
  }
  return examples;
}

// Since the epoch was committed, so that a curve shows when they came.
void AddDroppedSteps(const JobState& state, Summary* summary) {
  int64_t dropped = 0;
  for (const WorkerState& worker : state.workers()) {
    dropped += worker.dropped_steps();
    const TaskId& task = worker.sender().task();
    AddScalar(absl::StrCat(task.job(), "_", task.index(), "/dropped_steps"),
              static_cast<double>(worker.dropped_steps()), summary);
  }
  AddScalar("dropped_steps", static_cast<double>(dropped), summary);
}

std::vector<int64_t> StalenessBetween(const JobState& before,
                                      const JobState& after) {
  std::vector<int64_t> counts(after.staleness_counts().begin(),
                              after.staleness_counts().end());
  const int common =
      std::min(before.staleness_counts_size(), after.staleness_counts_size());
  for (int i = 0; i < common; ++i) counts[i] -= before.staleness_counts(i);
  return counts;
}

}  // namespace

void AddJobSummaries(const JobCounts& before, const JobCounts& after,
                     Summary* summary) {
  const double seconds = absl::ToDoubleSeconds(after.time - before.time);
  int64_t examples = 0;
  for (const WorkerState& worker : after.state.workers()) {
    examples += AddWorker(StateOf(worker.sender().task(), before.state), worker,
                          seconds, summary);
  }
  const int64_t steps = after.state.global_step() - before.state.global_step();
  AddScalar("steps_per_s", static_cast<double>(steps) / seconds, summary);
  AddScalar("examples_per_s", static_cast<double>(examples) / seconds, summary);
  // Rounds tell that the replication is synchronous.
  if (after.state.round() > 0) AddDroppedSteps(after.state, summary);
  const std::vector<int64_t> staleness =
      StalenessBetween(before.state, after.state);
  if (std::any_of(staleness.begin(), staleness.end(),
                  [](int64_t count) { return count > 0; })) {
    AddHistogram("staleness", MakeCountHistogram(staleness), summary);
  }
}

JobSummaries::JobSummaries(int64_t every_steps, const Clock* clock, Ask ask,
                           WriteSummary write)
    : clock_(clock),
      ask_(std::move(ask)),
      write_(std::move(write)),
      period_(every_steps) {}

absl::Status JobSummaries::AfterEnter(const EpochRecord& epoch) {
  period_.Start(epoch.global_step);
  model_epoch_ = epoch.model_epoch;
  before_.reset();
  AskForCounts();
  return absl::OkStatus();
}

absl::Status JobSummaries::AfterStep(const StepRecord& step) {
  UseAnswer();
  if (!period_.IsOver(step.global_step)) return absl::OkStatus();
  period_.Start(step.global_step);
  AskForCounts();
  // In one process it is there already.
  UseAnswer();
  return absl::OkStatus();
}

absl::Status JobSummaries::AtEnd(const EndRecord& end) {
  static_cast<void>(end);
  {
    // The counts of the last step may be on their way.
    absl::MutexLock lock(&answer_->mu);
    const bool& pending = answer_->pending;
    const auto has_come = +[](const bool* waiting) { return !*waiting; };
    clock_->Await(&answer_->mu, absl::Condition(has_come, &pending),
                  kLastAnswerWait);
  }
  UseAnswer();
  return absl::OkStatus();
}

void JobSummaries::AskForCounts() {
  {
    absl::MutexLock lock(&answer_->mu);
    // One at a time: the next period asks again.
    if (std::exchange(answer_->pending, true)) return;
    answer_->counts.reset();
  }
  ask_([answer = answer_, clock = clock_](absl::StatusOr<JobState> state) {
    const absl::Time now = clock->Now();
    absl::MutexLock lock(&answer->mu);
    answer->pending = false;
    if (state.ok()) answer->counts = JobCounts{*std::move(state), now};
  });
}

void JobSummaries::UseAnswer() {
  std::optional<JobCounts> counts;
  {
    absl::MutexLock lock(&answer_->mu);
    counts = std::exchange(answer_->counts, std::nullopt);
  }
  // One of another epoch was asked for before the last restore.
  if (!counts.has_value() || counts->state.model_epoch() != model_epoch_) {
    return;
  }
  if (before_.has_value() && before_->time < counts->time) {
    Summary summary;
    AddJobSummaries(*before_, *counts, &summary);
    write_(counts->state.global_step(), std::move(summary));
  }
  before_ = std::move(counts);
}

}  // namespace muster
