#include "ps_server/coordinator/request_checks.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rows/row_ranges.h"
#include "ps_server/caller/count_range.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/coordinator_worker.h"
#include "ps_server/coordinator/job_evaluations.h"
#include "ps_server/coordinator/members.h"

namespace muster {
namespace {

// The most that a commit may say of one worker: several times what there is.
constexpr size_t kMaxWorkerBytes = 1024;
// The most of one report: a sum of them stays far from an overflow.
constexpr int64_t kMaxStepCount = 1'000'000'000'000;

// The most examples of a step whose rows nobody deals: behind the row of a
// stream that it is leased stand all that a program has for it.
constexpr int64_t kMaxStreamExamples = int64_t{1} << 31;

// The most leases that a worker may want beside that of its step.
constexpr int32_t kMaxLeasesAhead = 1024;

bool IsStepCount(int64_t number) {
  return number >= 0 && number <= kMaxStepCount;
}

absl::Status CheckRestoredCounts(const CommitEpochRequest& request) {
  for (const WorkerState& worker : request.workers()) {
    if (IsCount(worker.steps()) && IsCount(worker.examples()) &&
        IsCount(worker.staleness_sum()) && IsCount(worker.staleness_count()) &&
        IsCount(worker.dropped_steps())) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("commit epoch: a count of ", TaskName(worker.sender()),
                     " is out of range; is the manifest damaged?"));
  }
  return absl::OkStatus();
}

absl::Status CheckRestoredTasks(const CommitEpochRequest& request) {
  std::set<TaskKey> tasks;
  for (const WorkerState& worker : request.workers()) {
    const std::string name = TaskName(worker.sender());
    const TaskId& task = worker.sender().task();
    if (!IsTrainingJob(task.job()) || task.index() < 0 ||
        worker.ByteSizeLong() > kMaxWorkerBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "commit epoch: worker ", name, " of ", worker.ByteSizeLong(),
          " bytes; wanted a task of job worker or chief, of at most ",
          kMaxWorkerBytes, "; is the manifest damaged?"));
    }
    if (!tasks.insert(KeyOf(worker.sender())).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("commit epoch: worker ", name,
                       " comes twice; is the manifest damaged?"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRestored(const CommitEpochRequest& request) {
  if (request.workers_size() > static_cast<int>(Members::kMaxTasks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("commit epoch: ", request.workers_size(),
                     " workers; a job has at most ", Members::kMaxTasks));
  }
  RETURN_IF_ERROR(JobEvaluations::Check("commit epoch", request.evaluations()));
  RETURN_IF_ERROR(CheckRestoredCounts(request));
  RETURN_IF_ERROR(Annotate(CheckLedger(request.ledger()), "commit epoch"));
  return CheckRestoredTasks(request);
}

absl::Status CheckStepNumbers(const StepRequest& request) {
  RETURN_IF_ERROR(JobEvaluations::Check("step", request.evaluations()));
  const std::string step = absl::StrCat("step ", request.step(), " from ",
                                        TaskName(request.sender()));
  RETURN_IF_ERROR(Annotate(CheckRows(request.rows()), step));
  if (request.step() < 0 || !IsStepCount(request.examples()) ||
      !IsStepCount(request.staleness())) {
    return absl::InvalidArgumentError(
        absl::StrCat(step, ": examples ", request.examples(), ", staleness ",
                     request.staleness(), ": a count is out of range"));
  }
  if (!IsStepCount(request.step_rows()) || request.leases_ahead() < 0 ||
      request.leases_ahead() > kMaxLeasesAhead ||
      !IsCount(request.pass().pass()) || !IsCount(request.pass().first())) {
    return absl::InvalidArgumentError(absl::StrCat(
        step, ": step_rows ", request.step_rows(), ", leases_ahead ",
        request.leases_ahead(), " (at most ", kMaxLeasesAhead, "), pass ",
        request.pass().pass(), " from place ", request.pass().first(),
        " on: a count is out of range"));
  }
  return absl::OkStatus();
}

absl::Status CheckLeasedRows(const StepRequest& report,
                             const RowLeases& leases) {
  const TaskKey task = KeyOf(report.sender());
  if (report.abandoned() && !report.skipped()) return absl::OkStatus();
  const RowLease lease = leases.BegunOf(task);
  const std::string step =
      absl::StrCat("step ", report.step(), " from ", TaskName(task));
  if (!report.rows().ranges().empty() && report.rows() != lease &&
      !leases.IsOfLapsed(task, report.rows())) {
    return absl::InvalidArgumentError(
        absl::StrCat(step, ": it reports ", DescribeRows(report.rows()),
                     ", which were never leased to it for this step; it has ",
                     DescribeRows(lease)));
  }
  int64_t rows =
      lease.ranges().empty() ? leases.WishOf(task).step_rows : NumRows(lease);
  if (leases.are_of_stream()) rows = kMaxStreamExamples;
  if (rows > 0 && report.examples() > rows) {
    return absl::InvalidArgumentError(
        absl::StrCat(step, ": examples ", report.examples(), ", of ", rows,
                     " rows: a count is out of range"));
  }
  return absl::OkStatus();
}

absl::Status CheckMayStop(const StepRequest& request, const Sender& chief) {
  if (request.stop_reason().empty() ||
      KeyOf(request.sender()) == KeyOf(chief)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("step: ", TaskName(request.sender()),
                   " asks everybody to stop, but is not the chief"));
}

absl::Status CheckMayFinish(const FinishRequest& request, const Sender& chief) {
  if (KeyOf(request.sender()) == KeyOf(chief) ||
      (!request.stop_job() && !request.unsaved())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("finish: ", TaskName(request.sender()),
                   request.stop_job() ? " asks everybody to stop"
                                      : " could not save the model",
                   ", but is not the chief"));
}

}  // namespace muster
