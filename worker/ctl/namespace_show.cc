// musterctl namespace show: one namespace's job, and its model on each ps task.
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/config/namespace_name.h"
#include "worker/ctl/namespace_calls.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

std::string StateOf(const WorkerState& worker) {
  if (worker.sender().incarnation() == 0) return "has not come";
  if (worker.lost()) return "lost";
  return worker.finished() ? "finished" : "trains";
}

std::string DescribeRows(const RowCounts& rows) {
  std::string text = absl::StrCat(
      "  rows done=", rows.done(), " leased=", rows.leased(),
      " returned=", rows.returned(), " trained_on_twice=", rows.repeated(),
      " passed_over=", rows.skipped());
  if (rows.epoch_rows() > 0) {
    absl::StrAppend(&text, " epoch=", rows.epoch_rows());
  }
  return text + "\n";
}

std::string DescribeJob(const JobState& job) {
  std::string text = absl::StrCat(
      "job ", JobPhase_Name(job.phase()), " step=", job.global_step(),
      " examples=", job.examples(), " model_epoch=", job.model_epoch(),
      job.stop_reason().empty() ? "" : " stopped by ",
      EscapeForLog(job.stop_reason(), 200), "\n");
  text += DescribeRows(job.rows());
  for (const WorkerState& worker : job.workers()) {
    absl::StrAppend(&text, "  ",
                    EscapeForLog(TaskName(worker.sender().task()), 80), " ",
                    StateOf(worker), " steps=", worker.steps(),
                    " examples=", worker.examples(),
                    " leased_rows=", worker.leased_rows(), "\n");
  }
  return text;
}

absl::Status Show(const VerbCall& call, VerbResult* result) {
  const std::string& name = call.arguments[0];
  RETURN_IF_ERROR(CheckNamespaceName("NAME", name));
  ASSIGN_OR_RETURN(
      NamespaceCalls calls,
      NamespaceCalls::Create(call, NamespaceCalls::Purpose::kLook));
  const auto shards = calls.List();
  if (!shards.ok()) return SayIfAway(shards.status(), result);
  std::string text;
  int task = 0;
  for (const ListNamespacesReply& reply : *shards) {
    for (const NamespaceState& space : reply.namespaces()) {
      if (space.namespace_() != name) continue;
      const ShardState& shard = space.shard();
      absl::StrAppend(
          &text, "/job:ps/task:", task, " ", ShardPhase_Name(shard.phase()),
          " tensors=", shard.tensors(), " bytes=", shard.bytes(),
          " slot_bytes=", shard.slot_bytes(), " version=", shard.version(),
          " applied_parts=", shard.applied_parts(), " of at most ",
          reply.max_namespace_bytes(), " bytes\n");
    }
    ++task;
  }
  if (text.empty()) return IsNotThere(name);
  const auto job = calls.Job(name);
  if (!job.ok()) return SayIfAway(job.status(), result);
  result->out = DescribeJob(*job) + text;
  return absl::OkStatus();
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "namespace show",
    {"NAME ('': the nameless namespace)",
     "shows a namespace's job, its workers, and each ps task's part.",
     NamespaceCalls::Flags(), 1, 1, &Show});

}  // namespace
}  // namespace muster
