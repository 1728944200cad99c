// ps_server: holds a shard of the parameters. See README.md.
#include <signal.h>

#include <cstdio>
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
#include "common/rpc/server/task_flags.h"
#include "common/tls/task_keys.h"
#include "ps_server/ps_task.h"
#include "spdlog/spdlog.h"

ABSL_FLAG(
    bool, keep_serving, false,
    "Do not end when the job is done: serve jobs that come and go, each "
    "in its namespace (worker --namespace); one that comes back goes on.");
ABSL_FLAG(int64_t, max_namespaces, 64,
          "With --keep_serving: named namespaces at a time.");
ABSL_FLAG(int64_t, max_namespace_bytes, 0,
          "With --keep_serving: the most of this task's memory that one "
          "namespace's model may take; 0: as much as others leave.");
ABSL_FLAG(std::string, http_address, "",
          "Serve a page for people, /metrics for Prometheus and /healthz on "
          "this host:port, such as 127.0.0.1:9180 (ps_server/http/README.md).");
ABSL_FLAG(int64_t, push_budget_mb, 256,
          "MiB of pushed gradients that may wait to be applied; beyond it "
          "workers are told when to try again.");
ABSL_FLAG(int, apply_threads, 1,
          "Threads that share the work of applying a large part of a gradient. "
          "The result is the same to the bit.");

namespace muster {
namespace {

// About as many as gRPC, timers and signals have.
constexpr int kOtherThreads = 16;

CommandLineOptions DescribeCommandLine() {
  CommandLineOptions options = TaskCommandLine("ps_server");
  options.summary = absl::StrCat(
      "Holds a shard of the parameters, applies the workers' gradients to it,\n"
      "and ends when the job is done.\n\n"
      "  ps_server --cluster=cluster_configs/local_1ps_2worker.json "
      "--task_index=0\n\n",
      kExitCodesHelp);
  FlagGroup network = NetworkFlagGroup();
  network.flags.push_back("http_address");
  options.groups = {ClusterFlagGroup(),
                    network,
                    {"Resources",
                     {"push_budget_mb", "apply_threads", "max_namespaces",
                      "max_namespace_bytes"}},
                    WaitingFlagGroup(),
                    {"Jobs", {"keep_serving"}},
                    LogFlagGroup()};
  return options;
}

absl::StatusOr<ResolvedCluster> ResolveOwnCluster() {
  ClusterOptions options = ClusterFlags();
  options.jobs = {kPsJob};
  return ResolveCluster(options);
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
  options.http_address = absl::GetFlag(FLAGS_http_address);
  RETURN_IF_ERROR(CheckOthersCanCome(cluster.spec, cluster.task, options.bind,
                                     Reporter(&LogLine)));
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
  if (!apply_threads.ok()) return LogFailure(apply_threads.status());
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
  if (!options.ok()) return LogFailure(options.status());
  options->clock = &clock;
  const auto keys = KeysOfTask(absl::GetFlag(FLAGS_certs_dir), cluster.task,
                               Reporter(&LogLine), &clock);
  if (!keys.ok()) return LogFailure(keys.status());
  options->credentials = CredentialsOf(keys->get());
  absl::StatusOr<std::unique_ptr<PsTask>> task =
      PsTask::Start(*std::move(options), &latch);
  if (absl::IsCancelled(task.status())) return latch.Wait().exit_code;
  if (!task.ok()) return LogFailure(task.status());
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
  const absl::Status logging =
      SetUpTaskLogging(cluster.ok() ? TaskName(cluster->task) : "");
  if (!logging.ok()) return LogFailure(logging);
  if (!cluster.ok()) return LogFailure(cluster.status());
  return Run(*cluster);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::ExplainExhaustion("ps_server");
  muster::EndProcess(
      muster::Main(std::vector<std::string>(argv + 1, argv + argc)));
}
