#include "worker/python/job_reader.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/escape.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_resolver.h"
#include "common/cluster/task_id.h"
#include "common/config/local_path.h"
#include "common/config/namespace_name.h"
#include "common/config/text_format.h"
#include "common/rpc/credentials.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/link_choice.h"
#include "common/rpc/server/listen_address.h"
#include "common/tls/certs_folder.h"
#include "proto/program.pb.h"
#include "worker/client/link/shard_link.h"
#include "worker/training/check_range.h"

namespace muster {
namespace {

constexpr char kSource[] = "reader";
constexpr absl::Duration kPause = absl::Milliseconds(100);
// Of a try; who waits looks at the time between two.
constexpr absl::Duration kGiveUpAfter = absl::Seconds(1);

absl::StatusOr<ProgramSpec> ReadSpec(absl::string_view text) {
  ProgramSpec spec;
  RETURN_IF_ERROR(ParseTextProto(text, kSource, &spec));
  RETURN_IF_ERROR(CheckLocalPath("cluster", spec.cluster()));
  RETURN_IF_ERROR(CheckLocalPath("certs_dir", spec.certs_dir()));
  RETURN_IF_ERROR(CheckNamespaceName("namespace", spec.namespace_()));
  RETURN_IF_ERROR(
      CheckFiniteNotNegative("max_wait_seconds", spec.max_wait_seconds()));
  if (spec.cluster().empty() && spec.ps_hosts().empty()) {
    return absl::InvalidArgumentError(
        "no ps tasks are given; give ps_hosts or cluster");
  }
  ProgramSpec place;
  place.set_cluster(spec.cluster());
  place.set_ps_hosts(spec.ps_hosts());
  place.set_certs_dir(spec.certs_dir());
  place.set_namespace_(spec.namespace_());
  place.set_max_wait_seconds(spec.max_wait_seconds());
  place.set_allow_insecure_network(spec.allow_insecure_network());
  if (place.SerializeAsString() == spec.SerializeAsString()) return spec;
  return absl::InvalidArgumentError(
      absl::StrCat("a reader is told ps_hosts or cluster, namespace, "
                   "certs_dir, allow_insecure_network and max_wait_seconds "
                   "alone; found ",
                   EscapeForLog(spec.ShortDebugString())));
}

absl::StatusOr<ResolvedCluster> PsTasksOf(const ProgramSpec& spec) {
  ClusterOptions options;
  options.cluster_file = spec.cluster();
  options.ps_hosts = spec.ps_hosts();
  options.jobs = {kPsJob};
  return ResolveCluster(options);
}

// The worker whose keys the reader has, as which it reads.
absl::StatusOr<TaskId> OwnTask(const std::string& certs_dir) {
  if (certs_dir.empty()) return MakeTaskId(kWorkerJob, 0);
  const auto index = OwnIndexIn(certs_dir, kWorkerJob);
  if (index.ok()) return MakeTaskId(kWorkerJob, *index);
  return Annotate(index.status(),
                  "a reader proves to be a worker: give certs_dir= a folder of "
                  "ca.pem and one worker's certificate and key");
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobReader>> JobReader::Connect(
    absl::string_view text) {
  ASSIGN_OR_RETURN(const ProgramSpec spec, ReadSpec(text));
  ASSIGN_OR_RETURN(const ResolvedCluster cluster, PsTasksOf(spec));
  ASSIGN_OR_RETURN(const TaskId self, OwnTask(spec.certs_dir()));
  const Clock* const clock = SystemClock();
  const Reporter reporter(&LogLine);
  ASSIGN_OR_RETURN(auto keys,
                   KeysOfTask(spec.certs_dir(), self, reporter, clock));
  const TaskCredentials credentials = CredentialsOf(keys.get());
  Options options;
  for (const auto& [index, address] : cluster.spec.tasks(kPsJob)) {
    RETURN_IF_ERROR(CheckConnectAddress(
        address, spec.allow_insecure_network() || credentials.proves_callers));
    options.shards.ps_names.push_back(
        absl::StrCat(TaskName(MakeTaskId(kPsJob, index)), " at ", address));
  }
  *options.shards.sender.mutable_task() = self;
  options.shards.sender.set_namespace_(spec.namespace_());
  options.shards.clock = clock;
  options.space = spec.namespace_();
  if (spec.max_wait_seconds() > 0) {
    options.max_wait = absl::Seconds(spec.max_wait_seconds());
  }
  options.reporter = reporter;
  WorkerLinks links =
      MakeClusterLinks(cluster.spec, credentials, LinkChoice::kGrpc,
                       /*reporter=*/Reporter(), clock);
  return std::make_unique<JobReader>(std::move(options),
                                     std::move(links.shards), std::move(keys));
}

JobReader::JobReader(Options options,
                     std::vector<std::unique_ptr<ParameterLink>> links,
                     std::unique_ptr<TaskKeys> keys)
    : options_([&options] {
        options.shards.transfer.give_up_after = kGiveUpAfter;
        return std::move(options);
      }()),
      keys_(std::move(keys)),
      shards_(options_.shards, std::move(links)) {
  shards_.SetEpoch(0, std::vector<uint64_t>(shards_.size()));
}

absl::Status JobReader::Wait(const absl::Status& status) {
  if (!IsTransient(status) && !absl::IsFailedPrecondition(status) &&
      !absl::IsAborted(status)) {
    return status;
  }
  const absl::Time now = shards_.clock().Now();
  const std::string line = waiting_.WaitFor(status.message(), now);
  if (!line.empty()) options_.reporter.Info(line);
  if (now < waiting_.since() + options_.max_wait) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "gave up after waiting ", absl::FormatDuration(options_.max_wait),
      " for the parameters of ", QuotedNamespace(options_.space), ": ",
      status.message(), " (--max_wait)"));
}

absl::Status JobReader::Open() {
  ASSIGN_OR_RETURN(NamespaceReader reader,
                   NamespaceReader::Open(&shards_, options_.space));
  const auto is_same = [](const TensorDef& a, const TensorDef& b) {
    return a.SerializeAsString() == b.SerializeAsString();
  };
  if (!tensors_.empty() &&
      !std::equal(tensors_.begin(), tensors_.end(), reader.tensors().begin(),
                  reader.tensors().end(), is_same)) {
    return absl::InvalidArgumentError(
        absl::StrCat(QuotedNamespace(options_.space),
                     " has another model than when its reading began; read it "
                     "anew"));
  }
  tensors_ = reader.tensors();
  tables_ = reader.tables();
  next_ = 0;
  reader_.emplace(std::move(reader));
  return absl::OkStatus();
}

absl::StatusOr<bool> JobReader::OpenUntil(absl::Time until) {
  while (!reader_.has_value()) {
    const absl::Status opened = Open();
    if (opened.ok()) break;
    RETURN_IF_ERROR(Wait(opened));
    if (!Pause(until)) return false;
  }
  return true;
}

bool JobReader::Pause(absl::Time until) {
  const Clock& clock = shards_.clock();
  const absl::Time now = clock.Now();
  if (now >= until) return false;
  absl::Mutex mu;
  const bool never = false;
  absl::MutexLock lock(&mu);
  clock.Await(&mu, absl::Condition(&never), std::min(kPause, until - now));
  return true;
}

void JobReader::StopWaiting() {
  if (waiting_.Stop()) options_.reporter.Info("no longer waiting");
}

absl::StatusOr<bool> JobReader::Await(absl::Duration timeout) {
  ASSIGN_OR_RETURN(const bool is_open,
                   OpenUntil(shards_.clock().Now() + timeout));
  if (is_open) StopWaiting();
  return is_open;
}

absl::StatusOr<bool> JobReader::Read(
    absl::Duration timeout, absl::Span<const absl::Span<float>> values) {
  const absl::Time until = shards_.clock().Now() + timeout;
  do {
    ASSIGN_OR_RETURN(const bool is_open, OpenUntil(until));
    if (!is_open) return false;
    if (next_ == tensors_.size()) return true;
    const absl::Status read =
        reader_->Read(static_cast<int>(next_), values[next_]);
    if (read.ok()) {
      StopWaiting();
      ++next_;
      continue;
    }
    RETURN_IF_ERROR(Wait(read));
    reader_.reset();
    Pause(until);
  } while (shards_.clock().Now() < until);
  return next_ == tensors_.size() && reader_.has_value();
}

}  // namespace muster
