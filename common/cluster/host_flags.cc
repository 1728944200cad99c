#include "common/cluster/host_flags.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "proto/cluster.pb.h"

namespace muster {
namespace {

void AddJob(absl::string_view name, absl::string_view hosts, ClusterDef* def) {
  if (absl::StripAsciiWhitespace(hosts).empty()) return;
  JobDef* job = def->add_job();
  job->set_name(std::string(name));
  if (name == kWorkerJob && absl::StripAsciiWhitespace(hosts) == kAnyTask) {
    return job->set_any_task(true);
  }
  int index = 0;
  for (absl::string_view host : absl::StrSplit(hosts, ',')) {
    (*job->mutable_tasks())[index++] =
        std::string(absl::StripAsciiWhitespace(host));
  }
}

}  // namespace

absl::StatusOr<ClusterSpec> ParseHostFlags(absl::string_view ps_hosts,
                                           absl::string_view worker_hosts) {
  ClusterDef def;
  AddJob(kPsJob, ps_hosts, &def);
  AddJob(kWorkerJob, worker_hosts, &def);
  auto spec = ClusterSpec::Create(def);
  if (!spec.ok()) {
    return Annotate(spec.status(), "--ps_hosts and --worker_hosts");
  }
  return spec;
}

}  // namespace muster
