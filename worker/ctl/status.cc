// musterctl status: a running job at a glance.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/config/namespace_name.h"
#include "common/rpc/worker_standing.h"
#include "worker/ctl/namespace_calls.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

constexpr absl::Duration kLook = absl::Seconds(1);
constexpr char kWorkerRow[] = "%-22s %-10s %9s %9s %9s %7s %8s  %s\n";
constexpr char kPsRow[] = "%-22s %-8s %14s %14s %12s %12s %8s\n";

// One look at a job.
struct Look {
  absl::Time when;
  JobState job;
  // The namespace's shard, by ps task.
  std::vector<ShardState> shards;
};

absl::StatusOr<Look> LookAt(const std::string& space, NamespaceCalls* calls) {
  Look look;
  ASSIGN_OR_RETURN(look.job, calls->Job(space));
  look.when = MonotonicClock().Now();
  ASSIGN_OR_RETURN(const auto lists, calls->List());
  for (const ListNamespacesReply& list : lists) {
    ShardState& shard = look.shards.emplace_back();
    for (const NamespaceState& held : list.namespaces()) {
      if (held.namespace_() == space) shard = held.shard();
    }
  }
  return look;
}

const WorkerState* FindWorker(const Look* look, const TaskId& task) {
  if (look == nullptr) return nullptr;
  for (const WorkerState& worker : look->job.workers()) {
    if (worker.sender().task() == task) return &worker;
  }
  return nullptr;
}

std::string Rate(double steps, double seconds) {
  return seconds > 0 && steps >= 0 ? absl::StrFormat("%.1f", steps / seconds)
                                   : "-";
}

// Steps/s since the look before, or since the worker began.
std::string RateOf(const WorkerState& worker, const Look& now,
                   const Look* before) {
  const WorkerState* const then = FindWorker(before, worker.sender().task());
  if (then == nullptr) {
    return Rate(static_cast<double>(worker.active_steps()), worker.active_s());
  }
  return Rate(static_cast<double>(worker.steps() - then->steps()),
              absl::ToDoubleSeconds(now.when - before->when));
}

// A worker that waits at ps task 0 says for whom; one that is silent is told.
std::string WaitOf(const WorkerState& worker) {
  if (worker.finished() || worker.sender().incarnation() == 0) return "";
  if (worker.silent_s() >= 10) {
    return absl::StrFormat("silent for %.0f s", worker.silent_s());
  }
  return worker.waits_for().empty()
             ? ""
             : absl::StrCat("waits for ",
                            EscapeForLog(worker.waits_for(), 200));
}

std::string DescribeWorker(const WorkerState& worker, const Look& now,
                           const Look* before) {
  const std::string staleness =
      worker.staleness_count() == 0
          ? "-"
          : absl::StrFormat("%.1f",
                            static_cast<double>(worker.staleness_sum()) /
                                static_cast<double>(worker.staleness_count()));
  return absl::StrFormat(
      kWorkerRow, EscapeForLog(TaskName(worker.sender().task()), 80),
      StandingOf(worker), absl::StrCat(worker.steps()),
      RateOf(worker, now, before), staleness,
      absl::StrCat(worker.dropped_steps()),
      absl::StrFormat("%.4g", worker.last_loss()), WaitOf(worker));
}

int64_t RowsOf(const ShardState& shard) {
  int64_t rows = 0;
  for (const TableState& table : shard.tables()) rows += table.rows();
  return rows;
}

std::string DescribePs(int task, const ShardState& shard, const Look* before,
                       double seconds) {
  const int64_t then =
      before == nullptr ? -1 : before->shards[task].applied_parts();
  return absl::StrFormat(
      kPsRow, absl::StrCat("/job:ps/task:", task),
      ShardPhase_Name(shard.phase()), absl::StrCat(shard.bytes()),
      absl::StrCat(shard.slot_bytes()), absl::StrCat(RowsOf(shard)),
      absl::StrCat(shard.applied_parts()),
      then < 0
          ? "-"
          : Rate(static_cast<double>(shard.applied_parts() - then), seconds));
}

std::string DescribeSave(const JobState& job) {
  if (job.saved_step() < 0) return "no save since the model was loaded";
  return absl::StrFormat("saved at step %d, %.0f s ago", job.saved_step(),
                         job.saved_s());
}

std::string DescribeJob(const Look& now, const Look* before) {
  const JobState& job = now.job;
  const std::string rate =
      before == nullptr
          ? ""
          : absl::StrCat(", ",
                         Rate(static_cast<double>(job.global_step() -
                                                  before->job.global_step()),
                              absl::ToDoubleSeconds(now.when - before->when)),
                         " steps/s");
  return absl::StrCat(
      JobPhase_Name(job.phase()), " at step ", job.global_step(), rate, ", ",
      job.examples(), " examples, epoch of the model ", job.model_epoch(), "; ",
      DescribeSave(job), job.is_stopped() ? "; an operator stops it" : "",
      job.stop_reason().empty()
          ? ""
          : absl::StrCat("; ends by ", EscapeForLog(job.stop_reason(), 200)),
      "\n");
}

std::string Describe(const Look& now, const Look* before) {
  std::string text = DescribeJob(now, before);
  if (!now.job.workers().empty()) {
    absl::StrAppend(
        &text, absl::StrFormat(kWorkerRow, "worker", "state", "steps",
                               "steps/s", "staleness", "dropped", "loss", ""));
  }
  for (const WorkerState& worker : now.job.workers()) {
    text += DescribeWorker(worker, now, before);
  }
  absl::StrAppend(&text,
                  absl::StrFormat(kPsRow, "ps", "state", "bytes", "slot bytes",
                                  "table rows", "parts", "parts/s"));
  const double seconds =
      before == nullptr ? 0 : absl::ToDoubleSeconds(now.when - before->when);
  for (size_t i = 0; i < now.shards.size(); ++i) {
    text += DescribePs(static_cast<int>(i), now.shards[i], before, seconds);
  }
  return text;
}

// Shows a look a second until the job is DONE, or a ps is away.
absl::Status Watch(const std::string& space, Look look, NamespaceCalls* calls,
                   const VerbCall& call, VerbResult* result) {
  while (look.job.phase() != DONE) {
    absl::Notification().WaitForNotificationWithTimeout(kLook);
    absl::StatusOr<Look> next = LookAt(space, calls);
    if (!next.ok()) return SayIfAway(next.status(), result);
    call.output.reporter.Info(Describe(*next, &look));
    look = *std::move(next);
  }
  result->out = Describe(look, nullptr);
  return absl::OkStatus();
}

absl::Status Status(const VerbCall& call, VerbResult* result) {
  const std::string space = call.Flag("namespace");
  RETURN_IF_ERROR(CheckNamespaceName("--namespace", space));
  ASSIGN_OR_RETURN(
      NamespaceCalls calls,
      NamespaceCalls::Create(call, NamespaceCalls::Purpose::kLook));
  absl::StatusOr<Look> look = LookAt(space, &calls);
  if (!look.ok()) return SayIfAway(look.status(), result);
  if (call.Flag("watch") == "true") {
    return Watch(space, *std::move(look), &calls, call, result);
  }
  result->out = Describe(*look, nullptr);
  return absl::OkStatus();
}

std::vector<Verb::Flag> Flags() {
  std::vector<Verb::Flag> flags = NamespaceCalls::Flags();
  flags.push_back({"namespace", "The job's namespace; default: the nameless."});
  flags.push_back({"watch", "Looks each second until the job is DONE.",
                   /*is_switch=*/true});
  return flags;
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "status",
    {"",
     "shows a running job: phase, step, its workers and what each waits for, "
     "its ps tasks.\n"
     "  Steps/s are those since a worker began; with --watch, those of the "
     "last "
     "second.",
     Flags(), 0, 0, &Status});

}  // namespace
}  // namespace muster
