#include "common/rpc/server/task_flags.h"

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "common/process/exit_code.h"
#include "common/rpc/protocol.h"
#include "spdlog/spdlog.h"

ABSL_FLAG(std::string, cluster, "",
          "File with the cluster: JSON in TensorFlow's shape, or text proto.");
ABSL_FLAG(std::string, ps_hosts, "",
          "Comma-separated host:port of the ps tasks, instead of --cluster. "
          "Without ps tasks the workers hold the parameters (replication: "
          "all_reduce).");
ABSL_FLAG(std::string, worker_hosts, "",
          "Comma-separated host:port of the worker tasks; any (or none): "
          "workers come and go.");
ABSL_FLAG(std::string, job_name, "",
          "Own job: ps; or worker (default), chief or evaluator.");
ABSL_FLAG(std::string, task_index, "",
          "Own index in the job; by default 0. any: of a worker, where the "
          "cluster takes any; that of its certificate, else ps task 0 gives "
          "it one.");
ABSL_FLAG(std::string, bind, "",
          "Listen on this host:port instead of the own address in the cluster "
          "(port 0: any free one). A worker serves its health there, in "
          "all-reduce also parameters.");
ABSL_FLAG(std::string, certs_dir, "",
          "Folder with ca.pem, JOB-INDEX.pem and JOB-INDEX.key of this task, "
          "of `muster certs`: mutual TLS with every peer. Renewed ones are "
          "taken as they come.");
ABSL_FLAG(bool, allow_insecure_network, false,
          "Talk to other machines without encryption or authentication.");
ABSL_FLAG(std::string, link, "auto",
          "What carries tensors between workers and ps tasks: auto (shared "
          "memory within a machine, else TCP, else gRPC), shared_memory or "
          "tcp (an error where it cannot be) or grpc.");
ABSL_FLAG(absl::Duration, worker_timeout, absl::Seconds(30),
          "Of ps tasks, and of a worker with --standalone or in all-reduce: a "
          "worker that was not heard of for so long is not waited for; after "
          "the job's end ps task 0 stays so long for one to learn of it.");
ABSL_FLAG(absl::Duration, max_wait, absl::Hours(2),
          "End with code 138 after waiting so long for other tasks; a ps task "
          "with --keep_serving does not wait for workers.");
ABSL_FLAG(std::string, log_level, "info",
          "trace, debug, info, warning, error, critical or off.");

namespace muster {

FlagGroup ClusterFlagGroup() {
  return {"Cluster",
          {"cluster", "ps_hosts", "worker_hosts", "job_name", "task_index"}};
}

FlagGroup NetworkFlagGroup() {
  return {"Network", {"bind", "certs_dir", "allow_insecure_network", "link"}};
}

FlagGroup WaitingFlagGroup() {
  return {"Waiting", {"max_wait", "worker_timeout"}};
}

FlagGroup LogFlagGroup() { return {"Printing", {"log_level"}}; }

CommandLineOptions TaskCommandLine(absl::string_view program) {
  CommandLineOptions options;
  options.program = std::string(program);
  options.version = absl::StrCat("muster ", kMusterVersion, " (protocol ",
                                 kProtocolVersion, ")");
  options.path_flags = {"cluster", "certs_dir"};
  return options;
}

ClusterOptions ClusterFlags() {
  ClusterOptions options;
  options.cluster_file = absl::GetFlag(FLAGS_cluster);
  options.ps_hosts = absl::GetFlag(FLAGS_ps_hosts);
  options.worker_hosts = absl::GetFlag(FLAGS_worker_hosts);
  options.job_name = absl::GetFlag(FLAGS_job_name);
  options.task_index = absl::GetFlag(FLAGS_task_index);
  options.tf_config = Environment("TF_CONFIG");
  options.launcher = LauncherOfSeveral(&Environment);
  return options;
}

absl::Status SetUpTaskLogging(const std::string& task_name) {
  LogOptions log;
  log.task_name = task_name;
  log.level = absl::GetFlag(FLAGS_log_level);
  log.no_color = !Environment("NO_COLOR").empty();
  return SetUpLogging(log);
}

int LogFailure(const absl::Status& status) {
  spdlog::critical("{}", std::string(status.message()));
  return ExitCodeOf(status);
}

}  // namespace muster
