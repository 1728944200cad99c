// ps_server: holds a shard of the parameters. See README.md.
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/logging.h"
#include "common/base/reporter.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_resolver.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/task_id.h"
#include "common/config/command_line.h"
#include "common/process/end_process.h"
#include "common/process/exhaustion.h"
#include "common/process/exit_code.h"
#include "common/process/memory_limit.h"
#include "common/process/process_setup.h"
#include "common/process/stop_latch.h"
#include "common/process/stop_signals.h"
#include "common/process/thread_supply.h"
#include "common/rpc/incarnation.h"
#include "common/rpc/link_choice.h"
#include "common/rpc/protocol.h"
#include "common/rpc/server/listen_address.h"
#include "common/tls/task_keys.h"
#include "ps_server/ps_task.h"
#include "spdlog/spdlog.h"

ABSL_FLAG(std::string, cluster, "",
          "File with the cluster: JSON in TensorFlow's shape, or text proto.");
ABSL_FLAG(std::string, ps_hosts, "",
          "Comma-separated host:port of the ps tasks, instead of --cluster.");
ABSL_FLAG(std::string, worker_hosts, "",
          "Comma-separated host:port of the worker tasks.");
ABSL_FLAG(std::string, job_name, "", "Own job: ps.");
ABSL_FLAG(int, task_index, -1, "Own index in the job; by default 0.");
ABSL_FLAG(std::string, bind, "",
          "Listen on this host:port instead of the own address in the cluster "
          "(port 0: any free one).");
ABSL_FLAG(bool, allow_insecure_network, false,
          "Listen where other machines can connect, without encryption or "
          "authentication.");
ABSL_FLAG(std::string, certs_dir, "",
          "Folder with ca.pem, ps-INDEX.pem and ps-INDEX.key, of `muster "
          "certs`: mutual TLS with every peer. Renewed ones are taken as they "
          "come.");
ABSL_FLAG(std::string, link, "auto",
          "Shared memory for workers of this machine: auto offers it, "
          "shared_memory ends with an error if it cannot, grpc does not.");
ABSL_FLAG(
    bool, keep_serving, false,
    "Do not end when the job is done: serve jobs that come and go, each "
    "in its namespace (worker --namespace); one that comes back goes on.");
ABSL_FLAG(int64_t, max_namespaces, 64,
          "With --keep_serving: named namespaces at a time.");
ABSL_FLAG(int64_t, max_namespace_bytes, 0,
          "With --keep_serving: the most of this task's memory that one "
          "namespace's model may take; 0: as much as others leave.");
ABSL_FLAG(absl::Duration, worker_timeout, absl::Seconds(30),
          "A worker that was not heard of for so long is not waited for; after "
          "the job's end ps task 0 stays so long for one to learn of it.");
ABSL_FLAG(absl::Duration, max_wait, absl::Hours(2),
          "End with code 138 when ps task 0, or every worker (without "
          "--keep_serving), was away for so long, or (task 0) a lost chief "
          "that has the last save still to make.");
ABSL_FLAG(int64_t, push_budget_mb, 256,
          "MiB of pushed gradients that may wait to be applied; beyond it "
          "workers are told when to try again.");
ABSL_FLAG(int, apply_threads, 1,
          "Threads that share the work of applying a large part of a gradient. "
          "The result is the same to the bit.");
ABSL_FLAG(std::string, log_level, "info",
          "trace, debug, info, warning, error, critical or off.");

namespace muster {
namespace {

// About as many as gRPC, timers and signals have.
constexpr int kOtherThreads = 16;

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

CommandLineOptions DescribeCommandLine() {
  CommandLineOptions options;
  options.program = "ps_server";
  options.summary = absl::StrCat(
      "Holds a shard of the parameters, applies the workers' gradients to it,\n"
      "and ends when the job is done.\n\n"
      "  ps_server --cluster=cluster_configs/local_1ps_2worker.json "
      "--task_index=0\n\n",
      kExitCodesHelp);
  options.version = absl::StrCat("muster ", kMusterVersion, " (protocol ",
                                 kProtocolVersion, ")");
  options.flags_files = {"ps_server/main.cc"};
  options.groups = {
      {"Cluster",
       {"cluster", "ps_hosts", "worker_hosts", "job_name", "task_index"}},
      {"Network", {"bind", "certs_dir", "allow_insecure_network", "link"}},
      {"Resources",
       {"push_budget_mb", "apply_threads", "max_namespaces",
        "max_namespace_bytes"}},
      {"Waiting", {"keep_serving", "worker_timeout", "max_wait"}}};
  options.path_flags = {"cluster", "certs_dir"};
  return options;
}

absl::StatusOr<ResolvedCluster> ResolveOwnCluster() {
  ClusterOptions options;
  options.cluster_file = absl::GetFlag(FLAGS_cluster);
  options.ps_hosts = absl::GetFlag(FLAGS_ps_hosts);
  options.worker_hosts = absl::GetFlag(FLAGS_worker_hosts);
  options.job_name = absl::GetFlag(FLAGS_job_name);
  options.task_index = absl::GetFlag(FLAGS_task_index);
  options.tf_config = Environment("TF_CONFIG");
  options.jobs = {kPsJob};
  return ResolveCluster(options);
}

int Fail(const absl::Status& status) {
  spdlog::critical("{}", std::string(status.message()));
  return ExitCodeOf(status);
}

absl::StatusOr<int64_t> PushBudgetBytes() {
  // Beyond it the shift would overflow.
  constexpr int64_t kMaxMb = int64_t{1} << 40;
  const int64_t mb = absl::GetFlag(FLAGS_push_budget_mb);
  if (mb >= 1 && mb <= kMaxMb) return mb << 20;
  return absl::InvalidArgumentError(
      absl::StrCat("--push_budget_mb: wanted MiB, at least 1, found ", mb));
}

absl::Status ReadNamespaceFlags(PsTaskOptions* options) {
  constexpr int64_t kMost = 4096;
  const int64_t namespaces = absl::GetFlag(FLAGS_max_namespaces);
  const int64_t bytes = absl::GetFlag(FLAGS_max_namespace_bytes);
  if (namespaces < 1 || namespaces > kMost) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max_namespaces: wanted 1 to ", kMost, ", found ", namespaces));
  }
  if (bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max_namespace_bytes: wanted bytes, or 0, found ", bytes));
  }
  options->max_namespaces = static_cast<size_t>(namespaces);
  if (bytes > 0) options->max_namespace_bytes = bytes;
  return absl::OkStatus();
}

absl::StatusOr<int> ApplyThreads() {
  constexpr int kMost = 256;
  const int threads = absl::GetFlag(FLAGS_apply_threads);
  if (threads < 1 || threads > kMost) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--apply_threads: wanted 1 to ", kMost, ", found ", threads));
  }
  RETURN_IF_ERROR(CheckThreads(threads + kOtherThreads));
  return threads;
}

absl::StatusOr<PsTaskOptions> TaskOptions(const ResolvedCluster& cluster,
                                          int apply_threads) {
  PsTaskOptions options;
  ASSIGN_OR_RETURN(options.link, ParseLinkChoice(absl::GetFlag(FLAGS_link)));
  ASSIGN_OR_RETURN(options.push_budget_bytes, PushBudgetBytes());
  RETURN_IF_ERROR(ReadNamespaceFlags(&options));
  options.apply_threads = apply_threads;
  options.cluster = cluster.spec.TrainingDef();
  options.task_index = cluster.task.index();
  options.bind = absl::GetFlag(FLAGS_bind);
  if (options.bind.empty()) {
    RETURN_IF_ERROR(CheckOthersCanCome(cluster.spec, cluster.task));
  }
  options.allow_insecure_network = absl::GetFlag(FLAGS_allow_insecure_network);
  options.keep_serving = absl::GetFlag(FLAGS_keep_serving);
  options.worker_timeout = absl::GetFlag(FLAGS_worker_timeout);
  options.max_wait = absl::GetFlag(FLAGS_max_wait);
  options.incarnation = NewIncarnation();
  options.max_shard_bytes = MaxShardBytes();
  return options;
}

int Run(const ResolvedCluster& cluster) {
  // Before gRPC, which does not end without its threads.
  const absl::StatusOr<int> apply_threads = ApplyThreads();
  if (!apply_threads.ok()) return Fail(apply_threads.status());
  StopLatch latch;
  const StopSignals signals(
      [&latch](int signal) {
        latch.Stop({128 + signal,
                    signal == SIGINT ? "interrupted (SIGINT)" : "SIGTERM"});
      },
      Reporter(&LogLine));
  const MonotonicClock clock{};
  spdlog::info("muster {} cluster: {} (from {})", std::string(kMusterVersion),
               cluster.spec.Summary(), cluster.source);

  absl::StatusOr<PsTaskOptions> options = TaskOptions(cluster, *apply_threads);
  if (!options.ok()) return Fail(options.status());
  options->clock = &clock;
  const auto keys = KeysOfTask(absl::GetFlag(FLAGS_certs_dir), cluster.task,
                               Reporter(&LogLine), &clock);
  if (!keys.ok()) return Fail(keys.status());
  options->credentials = CredentialsOf(keys->get());
  absl::StatusOr<std::unique_ptr<PsTask>> task =
      PsTask::Start(*std::move(options), &latch);
  if (absl::IsCancelled(task.status())) return latch.Wait().exit_code;
  if (!task.ok()) return Fail(task.status());
  return (*task)->Run();
}

int Main(const std::vector<std::string>& args) {
  SetUpProcess();
  const CommandLine command_line =
      ParseCommandLine(args, DescribeCommandLine());
  std::fputs(command_line.out.c_str(), stdout);
  std::fputs(command_line.error.c_str(), stderr);
  if (command_line.exit_code.has_value()) return *command_line.exit_code;

  const absl::StatusOr<ResolvedCluster> cluster = ResolveOwnCluster();
  LogOptions log;
  if (cluster.ok()) log.task_name = TaskName(cluster->task);
  log.level = absl::GetFlag(FLAGS_log_level);
  log.no_color = !Environment("NO_COLOR").empty();
  const absl::Status logging = SetUpLogging(log);
  if (!logging.ok()) return Fail(logging);
  if (!cluster.ok()) return Fail(cluster.status());
  return Run(*cluster);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::ExplainExhaustion("ps_server");
  muster::EndProcess(
      muster::Main(std::vector<std::string>(argv + 1, argv + argc)));
}
