// musterctl namespace ls: which models a cluster's ps tasks hold.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "worker/ctl/namespace_calls.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

constexpr char kRow[] = "%-24s %-9s %10s %8s %14s  %s\n";

int NumTraining(const JobState& job) {
  int training = 0;
  for (const WorkerState& worker : job.workers()) {
    const bool is_there = worker.sender().incarnation() != 0 && !worker.lost();
    if (is_there && !worker.finished()) ++training;
  }
  return training;
}

std::string DescribeActivity(const JobState& job) {
  return job.idle_s() < 0 ? "never"
                          : absl::StrFormat("%.0f s ago", job.idle_s());
}

std::string DescribeRow(const std::string& name, const JobState& job,
                        int64_t bytes) {
  return absl::StrFormat(kRow, absl::StrCat("'", EscapeForLog(name, 128), "'"),
                         JobPhase_Name(job.phase()),
                         absl::StrCat(job.global_step()),
                         absl::StrCat(NumTraining(job)), absl::StrCat(bytes),
                         DescribeActivity(job));
}

absl::Status List(const VerbCall& call, VerbResult* result) {
  ASSIGN_OR_RETURN(
      NamespaceCalls calls,
      NamespaceCalls::Create(call, NamespaceCalls::Purpose::kLook));
  const auto shards = calls.List();
  if (!shards.ok()) return SayIfAway(shards.status(), result);
  std::map<std::string, int64_t> bytes;
  for (const ListNamespacesReply& shard : *shards) {
    for (const NamespaceState& space : shard.namespaces()) {
      bytes[space.namespace_()] +=
          space.shard().bytes() + space.shard().slot_bytes();
    }
  }
  result->out = absl::StrFormat(kRow, "namespace", "job", "step", "workers",
                                "bytes", "last heard of");
  for (const auto& [name, held] : bytes) {
    const auto job = calls.Job(name);
    if (!job.ok()) return SayIfAway(job.status(), result);
    result->out += DescribeRow(name, *job, held);
  }
  return absl::OkStatus();
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "namespace ls",
    {"",
     "lists the namespaces of running ps tasks.\n"
     "  With their job, step, workers that train, bytes on all ps tasks.",
     NamespaceCalls::Flags(), 0, 0, &List});

}  // namespace
}  // namespace muster
