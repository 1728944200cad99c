// worker: trains a model on the ps tasks of a cluster, or alone. See README.md.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/logging.h"
#include "common/base/reporter.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/cluster/cluster_resolver.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/task_id.h"
#include "common/config/command_line.h"
#include "common/config/namespace_name.h"
#include "common/process/end_process.h"
#include "common/process/exhaustion.h"
#include "common/process/exit_code.h"
#include "common/process/memory_limit.h"
#include "common/process/own_host.h"
#include "common/process/process_setup.h"
#include "common/process/stop_latch.h"
#include "common/process/stop_signals.h"
#include "common/process/thread_supply.h"
#include "common/rpc/incarnation.h"
#include "common/rpc/link_choice.h"
#include "common/rpc/protocol.h"
#include "common/rpc/server/listen_address.h"
#include "common/tls/task_keys.h"
#include "grpc/support/log.h"
#include "spdlog/spdlog.h"
#include "worker/checkpoint/initial_weights.h"
#include "worker/client/call_status.h"
#include "worker/ctl/retired_flags.h"
#include "worker/input/input_threads.h"
#include "worker/saved/ensemble_member.h"
#include "worker/saved/saved_model_flags.h"
#include "worker/saved/saved_run.h"
#include "worker/session/session_messages.h"
#include "worker/task/compute_cores.h"
#include "worker/task/evaluator_task.h"
#include "worker/task/pipeline_dry_run.h"
#include "worker/task/printing.h"
#include "worker/task/signal_target.h"
#include "worker/task/worker_options.h"
#include "worker/tower/device_names.h"
#include "worker/training/replication_settings.h"
#include "worker/training/training_spec.h"
#include "worker/worker_process.h"

ABSL_FLAG(std::string, cluster, "",
          "File with the cluster: JSON in TensorFlow's shape, or text proto.");
ABSL_FLAG(std::string, ps_hosts, "",
          "Comma-separated host:port of the ps tasks, instead of --cluster. "
          "Without ps tasks the workers hold the parameters (replication: "
          "all_reduce).");
ABSL_FLAG(std::string, worker_hosts, "",
          "Comma-separated host:port of the worker tasks.");
ABSL_FLAG(std::string, job_name, "",
          "Own job: worker (default), chief or evaluator.");
ABSL_FLAG(int, task_index, -1, "Own index in the job; by default 0.");
ABSL_FLAG(std::string, namespace, "",
          "Train in this namespace of ps tasks that serve several jobs "
          "(ps_server --keep_serving): letters, digits and _./-");
ABSL_FLAG(bool, standalone, false,
          "Train alone in this process, without ps tasks and ports.");
ABSL_FLAG(std::string, training, "",
          "File with the training spec, as text proto; worker/model/zoo has "
          "examples.");
ABSL_FLAG(std::vector<std::string>, set, {},
          "Overrides a field: --set=optimizer.adam.learning_rate=3e-4, and a "
          "list as a whole: --set=model.input_shape=1,28,28, --set='placement."
          "pin={pattern: \"conv.*\" ps_task: 1}, {...}'. A stop.* replaces "
          "all stops of the file. May be given several times.");
ABSL_FLAG(std::string, train_dir, "",
          "Folder for checkpoints and result.json; only the chief uses it. A "
          "training that is there goes on.");
ABSL_FLAG(std::string, init_from, "",
          "Safetensors file whose values a new training starts from; only the "
          "chief uses it. A training that is in --train_dir goes on instead.");
ABSL_FLAG(std::string, init_from_map, "",
          "PATTERN=REPLACEMENT renames tensors of --init_from or --read_from: "
          "'model.*.weight=*/weights'; 'head.*=' leaves them out. May be given "
          "several times; the first that fits decides.");
ABSL_FLAG(bool, init_from_partial, false,
          "Parameters that --init_from or --read_from lacks start from the "
          "seed, and tensors "
          "that the model lacks are passed over; each is listed.");
ABSL_FLAG(std::string, read_from, "",
          "Namespace of the ps tasks whose parameters a new training starts "
          "from, matched as those of --init_from; '' in quotes: the nameless "
          "one. Only the chief uses it.");
ABSL_FLAG(std::string, inspect_checkpoint, "",
          "Now musterctl checkpoint ls; goes with the next release.");
ABSL_FLAG(std::string, diff_with, "",
          "With --inspect_checkpoint; now musterctl checkpoint diff.");
ABSL_FLAG(std::string, export_to, "",
          "With --inspect_checkpoint; now musterctl checkpoint export.");
ABSL_FLAG(std::string, device, "auto",
          "What computes: a backend (cuda, cpu, ref), one of its devices "
          "(cuda:1), or auto, the first of these that can be used.");
ABSL_FLAG(std::vector<std::string>, devices, {},
          "Several devices, each with a tower (a replica of the model) of this "
          "worker: --devices=cpu:0,cpu:1. --list_devices prints all.");
ABSL_FLAG(int, num_devices, 0,
          "Instead of --devices: the first so many devices of --device.");
ABSL_FLAG(bool, allow_soft_placement, false,
          "Compute on the cpu, and say so, where a named device is missing.");
ABSL_FLAG(bool, log_device_placement, false,
          "Print what computes each layer: device, implementation, memory.");
ABSL_FLAG(int64_t, device_memory_limit_mb, 0,
          "Memory of a model on each device that computes in the host's, in "
          "MiB; a model that wants more is refused. 0: no such limit.");
ABSL_FLAG(bool, pipeline_dry_run, false,
          "Measure the stages of the model's pipeline, print what they cost, "
          "and end.");
ABSL_FLAG(double, gpu_memory_fraction, 1,
          "Of a GPU's memory that may be used: 0.5 for half of it.");
ABSL_FLAG(int64_t, gpu_memory_limit_mb, 0,
          "Of a GPU's memory that may be used, in MiB. 0: no such limit.");
ABSL_FLAG(int, gpu_virtual_devices, 1,
          "Make so many devices of each GPU, which share its memory.");
ABSL_FLAG(
    std::string, gpu_library_path, "",
    "Folders, separated by colons, in which to look for cuDNN, cuBLAS and "
    "NCCL first.");
ABSL_FLAG(int, compute_threads, 0,
          "Threads that compute, divided among the towers. 0: the cores, or "
          "the quota of a cgroup, over the workers of this machine; at most "
          "OMP_NUM_THREADS and SLURM_CPUS_PER_TASK.");
ABSL_FLAG(std::string, cpus, "",
          "Cores to run on, a thread on each: 0-3,6. By default all.");
ABSL_FLAG(absl::Duration, max_wait, absl::Hours(2),
          "End with code 138 after waiting so long for other tasks.");
ABSL_FLAG(absl::Duration, worker_timeout, absl::Seconds(30),
          "With --standalone and in all-reduce: when a worker is lost. In a "
          "cluster with ps tasks ps task 0 has this flag.");
ABSL_FLAG(bool, placement_dry_run, false,
          "Now musterctl placement; goes with the next release.");
ABSL_FLAG(bool, allow_insecure_network, false,
          "Talk to other machines without encryption or authentication.");
ABSL_FLAG(
    std::string, certs_dir, "",
    "Folder with ca.pem, JOB-INDEX.pem and JOB-INDEX.key of this task, of "
    "`muster certs`: mutual TLS with every peer. Renewed ones are taken "
    "as they come.");
ABSL_FLAG(std::string, bind, "",
          "Serve health (in all-reduce also parameters) on this host:port "
          "instead of the own address in the cluster.");
ABSL_FLAG(std::string, link, "auto",
          "What carries tensors to and from the ps tasks: auto (shared memory "
          "with those of this machine, else gRPC), shared_memory or grpc.");
ABSL_FLAG(int64_t, profile_steps, 0,
          "Write a timeline of so many steps of this process to "
          "profile-JOB-INDEX.json in --train_dir: pull, compute, push, what a "
          "GPU does. Open it in ui.perfetto.dev or chrome://tracing.");
ABSL_FLAG(int64_t, profile_from_step, 10,
          "With --profile_steps: the first of them, counted from 1 in this "
          "process. The first steps are slower than the rest.");
ABSL_FLAG(absl::Duration, progress_every, absl::Seconds(10),
          "Between progress lines where there is no terminal; 0: each step.");
ABSL_FLAG(std::string, log_level, "info",
          "trace, debug, info, warning, error, critical or off.");
ABSL_FLAG(bool, list, false, "Now musterctl list; goes with the next release.");
ABSL_FLAG(bool, list_devices, false, "Print the devices, and end.");

namespace muster {
namespace {

constexpr int64_t kBytesPerMb = int64_t{1} << 20;
// About as many as gRPC, input (its first), timers and signals have.
constexpr int kOtherThreads = 16;
// More than any card has, and few enough to be counted in bytes.
constexpr int64_t kMaxGpuMemoryMb = int64_t{1} << 30;

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

CommandLineOptions DescribeCommandLine() {
  CommandLineOptions options;
  options.program = "worker";
  options.summary = absl::StrCat(
      "Trains a model: on the ps tasks of a cluster, or alone.\n\n"
      "  worker --standalone --training=worker/model/zoo/mnist_cnn.textproto "
      "--train_dir=run1\n"
      "  worker --cluster=cluster_configs/local_1ps_2worker.json "
      "--task_index=0 \\\n"
      "      --training=worker/model/zoo/mnist_cnn.textproto "
      "--train_dir=run1\n\n",
      kExitCodesHelp);
  options.version = absl::StrCat("muster ", kMusterVersion, " (protocol ",
                                 kProtocolVersion, ")");
  options.flags_files = {"worker/main.cc", kSavedModelFlagsFile};
  options.groups = {
      {"Cluster",
       {"cluster", "ps_hosts", "worker_hosts", "job_name", "task_index",
        "namespace", "standalone"}},
      {"Training", {"training", "set", "train_dir"}},
      {"Using a model",
       {"evaluate", "predict", "ensemble", "output", "predict_values"}},
      {"Checkpoints",
       {"init_from", "read_from", "init_from_map", "init_from_partial",
        "inspect_checkpoint", "diff_with", "export_to"}},
      {"Device",
       {"device", "devices", "num_devices", "allow_soft_placement",
        "log_device_placement", "device_memory_limit_mb", "compute_threads",
        "cpus"}},
      {"GPU",
       {"gpu_memory_fraction", "gpu_memory_limit_mb", "gpu_virtual_devices",
        "gpu_library_path"}},
      {"Network", {"bind", "certs_dir", "allow_insecure_network", "link"}},
      {"Waiting", {"max_wait", "worker_timeout"}},
      {"Printing",
       {"list", "list_devices", "placement_dry_run", "pipeline_dry_run",
        "progress_every", "profile_steps", "profile_from_step", "log_level"}}};
  options.path_flags = {"cluster",
                        "training",
                        "train_dir",
                        "init_from",
                        "inspect_checkpoint",
                        "diff_with",
                        "export_to",
                        "gpu_library_path",
                        "certs_dir",
                        "ensemble",
                        "output"};
  options.repeated_flags = {"set", "init_from_map"};
  options.flags_from_zero = {"progress_every"};
  return options;
}

absl::StatusOr<ResolvedCluster> ResolveOwnCluster() {
  if (UsesSavedModel() &&
      !(absl::GetFlag(FLAGS_cluster) + absl::GetFlag(FLAGS_ps_hosts) +
        absl::GetFlag(FLAGS_worker_hosts))
           .empty()) {
    return absl::InvalidArgumentError(
        "--evaluate and --predict read files and need no cluster: leave "
        "--cluster, --ps_hosts and --worker_hosts out");
  }
  ClusterOptions options;
  options.cluster_file = absl::GetFlag(FLAGS_cluster);
  options.ps_hosts = absl::GetFlag(FLAGS_ps_hosts);
  options.worker_hosts = absl::GetFlag(FLAGS_worker_hosts);
  options.job_name = absl::GetFlag(FLAGS_job_name);
  options.task_index = absl::GetFlag(FLAGS_task_index);
  options.standalone = absl::GetFlag(FLAGS_standalone) || UsesSavedModel();
  if (!UsesSavedModel()) options.tf_config = Environment("TF_CONFIG");
  options.jobs = {kWorkerJob, kChiefJob, kEvaluatorJob};
  options.can_be_standalone = true;
  options.can_all_reduce = true;
  return ResolveCluster(options);
}

int Fail(const absl::Status& status) {
  spdlog::critical("{}", std::string(status.message()));
  // There may be room again.
  const bool is_full = IsOfFile(status) && absl::IsResourceExhausted(status);
  return is_full ? kExitRetryable : ExitCodeOf(status);
}

// The own address, or --bind; "" to serve nothing. Everything that this process
// connects to or listens on is on this machine, or has keys, or the user said
// that the network is to be trusted.
absl::StatusOr<std::string> CheckNetwork(const ResolvedCluster& cluster) {
  const bool trusted = absl::GetFlag(FLAGS_allow_insecure_network) ||
                       !absl::GetFlag(FLAGS_certs_dir).empty();
  for (const std::string& address : cluster.spec.ps_addresses()) {
    RETURN_IF_ERROR(CheckConnectAddress(address, trusted));
  }
  if (cluster.spec.empty()) return "";
  const std::string bind = absl::GetFlag(FLAGS_bind);
  // The cluster may not list the evaluator; then it serves no health.
  const auto own = cluster.spec.AddressOf(cluster.task);
  if (!own.ok() && bind.empty()) return "";
  if (bind.empty()) {
    RETURN_IF_ERROR(CheckOthersCanCome(cluster.spec, cluster.task));
  }
  return ChooseListenAddress(own.value_or(""), bind, trusted);
}

// Null without --certs_dir.
absl::StatusOr<std::unique_ptr<TaskKeys>> KeysFlag(
    const ResolvedCluster& cluster, const MonotonicClock& clock) {
  const std::string dir = absl::GetFlag(FLAGS_certs_dir);
  if (!dir.empty() && cluster.spec.empty()) {
    return absl::InvalidArgumentError(
        "--certs_dir: --standalone trains in one process, without links");
  }
  return KeysOfTask(dir, cluster.task, Reporter(&LogLine), &clock);
}

absl::StatusOr<LinkChoice> LinkFlag(const ResolvedCluster& cluster) {
  ASSIGN_OR_RETURN(const LinkChoice choice,
                   ParseLinkChoice(absl::GetFlag(FLAGS_link)));
  if (choice != LinkChoice::kAuto && cluster.spec.empty()) {
    return absl::InvalidArgumentError(
        "--link: --standalone trains in one process, without links");
  }
  return choice;
}

std::vector<std::string> Repeated(const CommandLine& command_line,
                                  const char* flag) {
  const auto values = command_line.repeated.find(flag);
  return values == command_line.repeated.end() ? std::vector<std::string>()
                                               : values->second;
}

absl::StatusOr<InitialWeights::Options> InitFlags(
    const CommandLine& command_line) {
  InitialWeights::Options init;
  init.path = absl::GetFlag(FLAGS_init_from);
  init.name_map = Repeated(command_line, "init_from_map");
  init.partial = absl::GetFlag(FLAGS_init_from_partial);
  const bool has_source = !(init.path + absl::GetFlag(FLAGS_read_from)).empty();
  if (!has_source && (init.partial || !init.name_map.empty())) {
    return absl::InvalidArgumentError(
        "--init_from_map and --init_from_partial want --init_from or "
        "--read_from");
  }
  init.path = WithoutLinks(init.path);
  return init;
}

PrintingOptions PrintingFlags(const TaskId& self) {
  PrintingOptions options;
  options.label = absl::StrCat(self.job(), " ", self.index());
  options.progress_every = absl::GetFlag(FLAGS_progress_every);
  options.no_color = Environment("NO_COLOR");
  options.columns = Environment("COLUMNS");
  return options;
}

// Pins this process, and says how many threads compute.
absl::StatusOr<ComputeThreads> SetUpCores(const ResolvedCluster& cluster,
                                          const InputSpec& input) {
  const std::string cpus = absl::GetFlag(FLAGS_cpus);
  RETURN_IF_ERROR(PinToCpus(cpus));
  ThreadLimits limits = LimitsHere();
  limits.asked = absl::GetFlag(FLAGS_compute_threads);
  limits.cpus = cpus;
  if (limits.asked == 0 && cpus.empty()) {
    limits.tasks = TasksOfMachine(cluster.spec, cluster.task, &IsOwnHost);
  }
  limits.omp_num_threads = Environment("OMP_NUM_THREADS");
  limits.slurm_cpus_per_task = Environment("SLURM_CPUS_PER_TASK");
  ASSIGN_OR_RETURN(ComputeThreads threads, ChooseThreads(limits));
  if (!threads.warning.empty()) spdlog::warn("{}", threads.warning);
  // As many apply gradients.
  const int of_ps = cluster.spec.is_all_reduce() ? threads.count : 0;
  RETURN_IF_ERROR(CheckThreads(threads.count +
                               InputThreads(input, threads.count) - 1 + of_ps +
                               kOtherThreads));
  return threads;
}

absl::StatusOr<GpuOptions> GpuFlags() {
  GpuOptions gpu;
  const int64_t limit_mb = absl::GetFlag(FLAGS_gpu_memory_limit_mb);
  gpu.memory_limit_bytes = std::min(limit_mb, kMaxGpuMemoryMb) * kBytesPerMb;
  gpu.memory_fraction = absl::GetFlag(FLAGS_gpu_memory_fraction);
  gpu.virtual_devices = absl::GetFlag(FLAGS_gpu_virtual_devices);
  gpu.library_path = absl::GetFlag(FLAGS_gpu_library_path);
  RETURN_IF_ERROR(CheckGpuOptions(gpu));
  RETURN_IF_ERROR(CheckGpuFlags(gpu));
  return gpu;
}

absl::StatusOr<DeviceChoice> DeviceFlags() {
  DeviceChoice choice;
  choice.device = absl::GetFlag(FLAGS_device);
  choice.devices = absl::GetFlag(FLAGS_devices);
  choice.num_devices = absl::GetFlag(FLAGS_num_devices);
  choice.allow_soft_placement = absl::GetFlag(FLAGS_allow_soft_placement);
  ASSIGN_OR_RETURN(choice.gpu, GpuFlags());
  const int64_t limit_mb = absl::GetFlag(FLAGS_device_memory_limit_mb);
  if (limit_mb < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--device_memory_limit_mb: wanted 0 (no limit) or more, "
                     "found ",
                     limit_mb));
  }
  if (limit_mb > 0) {
    choice.memory_limit_bytes = SaturatingProduct(limit_mb, kBytesPerMb);
  }
  return choice;
}

// Those of `names` that have another value than their default: "--name=value".
std::vector<std::string> GivenFlags(const std::vector<std::string>& names) {
  std::vector<std::string> given;
  for (const std::string& name : names) {
    const absl::CommandLineFlag* const flag = absl::FindCommandLineFlag(name);
    if (flag->CurrentValue() == flag->DefaultValue()) continue;
    given.push_back(absl::StrCat("--", name, "=", flag->CurrentValue()));
  }
  return given;
}

// --list and --list_devices.
int List() {
  if (absl::GetFlag(FLAGS_list)) {
    return ListComponents(
        GivenFlags({"gpu_memory_fraction", "gpu_memory_limit_mb",
                    "gpu_virtual_devices", "gpu_library_path"}));
  }
  const auto gpu = GpuFlags();
  if (!gpu.ok()) {
    std::fputs(absl::StrCat(gpu.status().message(), "\n").c_str(), stderr);
    return ExitCodeOf(gpu.status());
  }
  std::fputs(DescribeDevices(*gpu).c_str(), stdout);
  return kExitDone;
}

absl::StatusOr<std::string> NamespaceFlag(const ClusterSpec& cluster) {
  const std::string name = absl::GetFlag(FLAGS_namespace);
  RETURN_IF_ERROR(CheckNamespaceName("--namespace", name));
  if (!name.empty() && (cluster.empty() || cluster.is_all_reduce())) {
    return absl::InvalidArgumentError(
        "--namespace wants ps tasks that serve several jobs (ps_server "
        "--keep_serving); this training has none");
  }
  return name;
}

// `init` has how tensors are matched.
absl::StatusOr<NamespaceWeights> ReadFromFlag(
    const ClusterSpec& cluster, const InitialWeights::Options& init) {
  NamespaceWeights weights;
  std::string name = absl::GetFlag(FLAGS_read_from);
  if (name.empty()) return weights;
  if (cluster.empty() || cluster.is_all_reduce()) {
    return absl::InvalidArgumentError(
        "--read_from wants ps tasks that serve several jobs (ps_server "
        "--keep_serving); this training has none");
  }
  if (!init.path.empty()) {
    return absl::InvalidArgumentError(
        "--read_from and --init_from: a training starts from one of them; "
        "leave the other out");
  }
  if (name == "''") name.clear();
  RETURN_IF_ERROR(CheckNamespaceName("--read_from", name));
  if (name == absl::GetFlag(FLAGS_namespace)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--read_from: ", QuotedNamespace(name), " is this training's own"));
  }
  weights.space = name;
  weights.match = init;
  return weights;
}

// The options that a worker and an evaluator have in common; says the first
// line.
template <typename Options>
absl::StatusOr<Options> MakeTaskOptions(const ResolvedCluster& cluster,
                                        TrainingSpec training) {
  Options options;
  options.self = cluster.task;
  options.cluster = cluster.spec;
  options.training = std::move(training);
  ASSIGN_OR_RETURN(options.job_namespace, NamespaceFlag(cluster.spec));
  options.train_dir = absl::GetFlag(FLAGS_train_dir);
  options.log_device_placement = absl::GetFlag(FLAGS_log_device_placement);
  options.max_wait = absl::GetFlag(FLAGS_max_wait);
  options.incarnation = NewIncarnation();
  ASSIGN_OR_RETURN(options.device_choice, DeviceFlags());
  ASSIGN_OR_RETURN(options.listen_address, CheckNetwork(cluster));
  ASSIGN_OR_RETURN(const ComputeThreads threads,
                   SetUpCores(cluster, options.training.input()));
  options.compute_threads = threads.count;
  spdlog::info(
      "muster {} cluster: {} (from {}) model={} compute_threads={} ({})",
      std::string(kMusterVersion), cluster.spec.Summary(), cluster.source,
      options.training.model().name(), threads.count, threads.source);
  return options;
}

absl::StatusOr<WorkerOptions> MakeWorkerOptions(
    const ResolvedCluster& cluster, TrainingSpec training,
    const CommandLine& command_line) {
  ASSIGN_OR_RETURN(WorkerOptions options, MakeTaskOptions<WorkerOptions>(
                                              cluster, std::move(training)));
  options.profiled.first = absl::GetFlag(FLAGS_profile_from_step);
  options.profiled.count = absl::GetFlag(FLAGS_profile_steps);
  Printing printing = MakePrinting(PrintingFlags(cluster.task));
  options.progress = std::move(printing.progress);
  options.write_progress = std::move(printing.write_progress);
  options.reporter = std::move(printing.reporter);
  ASSIGN_OR_RETURN(options.init, InitFlags(command_line));
  ASSIGN_OR_RETURN(options.read_from, ReadFromFlag(cluster.spec, options.init));
  options.stop_source =
      StopSource(options.training, absl::GetFlag(FLAGS_training),
                 Repeated(command_line, "set"));
  return options;
}

absl::Status CheckNoProfile(const char* who) {
  if (absl::GetFlag(FLAGS_profile_steps) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--profile_steps: ", who, " takes no steps; give it to a worker"));
}

// The flags that steps and several towers alone have.
absl::Status CheckNoStepFlags(const char* who) {
  RETURN_IF_ERROR(CheckNoProfile(who));
  if (absl::GetFlag(FLAGS_devices).empty() &&
      absl::GetFlag(FLAGS_num_devices) == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--devices and --num_devices: ", who, " has one; use --device"));
}

// Without members the model is that of --training.
absl::StatusOr<SavedRunOptions> MakeSavedRunOptions(
    const ResolvedCluster& cluster, const TrainingSpec& training,
    std::vector<EnsembleMember> members, const CommandLine& command_line) {
  SavedRunOptions options;
  RETURN_IF_ERROR(ReadSavedModelFlags(&options));
  RETURN_IF_ERROR(NamespaceFlag(cluster.spec).status());
  RETURN_IF_ERROR(members.empty() ? CheckNoStepFlags("a trained model")
                                  : CheckNoProfile("an ensemble"));
  options.members = std::move(members);
  options.model.training = training;
  options.model.log_device_placement =
      absl::GetFlag(FLAGS_log_device_placement);
  options.model.reporter = MakePrinting(PrintingFlags(cluster.task)).reporter;
  options.train_dir = absl::GetFlag(FLAGS_train_dir);
  ASSIGN_OR_RETURN(options.model.device_choice, DeviceFlags());
  ASSIGN_OR_RETURN(const ComputeThreads threads,
                   SetUpCores(cluster, training.input()));
  options.model.compute_threads = threads.count;
  ASSIGN_OR_RETURN(options.init, InitFlags(command_line));
  RETURN_IF_ERROR(ReadFromFlag(cluster.spec, options.init).status());
  return options;
}

// --evaluate and --predict.
int RunSavedModel(const ResolvedCluster& cluster, const TrainingSpec& training,
                  std::vector<EnsembleMember> members,
                  const CommandLine& command_line) {
  auto options =
      MakeSavedRunOptions(cluster, training, std::move(members), command_line);
  if (!options.ok()) return Fail(options.status());
  const absl::StatusOr<int> ended = UseSavedModel(*std::move(options));
  if (ended.ok()) return *ended;
  const int exit_code = Fail(ended.status());
  // As a training whose loss is not finite.
  if (absl::IsOutOfRange(ended.status())) return kExitFailed;
  return absl::IsFailedPrecondition(ended.status()) ? int{kExitBadCheckpoint}
                                                    : exit_code;
}

int RunEnsemble(const ResolvedCluster& cluster,
                const CommandLine& command_line) {
  if (!(absl::GetFlag(FLAGS_train_dir) + absl::GetFlag(FLAGS_init_from))
           .empty()) {
    return Fail(absl::InvalidArgumentError(
        "--train_dir and --init_from: --ensemble names the models; leave them "
        "out"));
  }
  auto members = ReadEnsembleFlag(absl::GetFlag(FLAGS_training),
                                  Repeated(command_line, "set"));
  if (!members.ok()) return Fail(members.status());
  const TrainingSpec training = members->front().training;
  return RunSavedModel(cluster, training, *std::move(members), command_line);
}

int RunEvaluator(const ResolvedCluster& cluster, TrainingSpec training,
                 const TaskCredentials& credentials,
                 const MonotonicClock& clock) {
  auto options =
      MakeTaskOptions<EvaluatorOptions>(cluster, std::move(training));
  if (!options.ok()) return Fail(options.status());
  options->reporter = MakePrinting(PrintingFlags(cluster.task)).reporter;
  const absl::Status fits = CheckNoStepFlags("an evaluator");
  if (!fits.ok()) return Fail(fits);
  StopLatch latch;
  options->clock = &clock;
  options->latch = &latch;
  options->credentials = credentials;
  SignalTarget target;
  const StopSignals signals([&target](int signal) { target.OnSignal(signal); },
                            options->reporter);
  const auto task = EvaluatorTask::Create(*std::move(options));
  if (!task.ok()) return Fail(task.status());
  target.HandTo([&latch](int signal) {
    latch.Stop({128 + signal, absl::StrCat("signal ", signal)});
  });
  return (*task)->Run();
}

int PrintPipeline(const WorkerOptions& options) {
  const auto table = RunPipelineDryRun(
      {options.training, options.device_choice, options.compute_threads,
       std::max(1, static_cast<int>(options.cluster.training_tasks().size())),
       options.reporter});
  if (!table.ok()) return Fail(table.status());
  std::fputs(table->c_str(), stdout);
  return kExitDone;
}

int RunWorker(const ResolvedCluster& cluster, WorkerOptions options,
              const MonotonicClock& clock) {
  const auto link = LinkFlag(cluster);
  if (!link.ok()) return Fail(link.status());
  options.clock = &clock;
  const absl::StatusOr<int> exit_code = RunWorkerProcess(
      std::move(options), {*link, absl::GetFlag(FLAGS_worker_timeout)});
  return exit_code.ok() ? *exit_code : Fail(exit_code.status());
}

int Run(const ResolvedCluster& cluster, const CommandLine& command_line,
        const MonotonicClock& clock, absl::Time start_time) {
  if (!absl::GetFlag(FLAGS_diff_with).empty() ||
      !absl::GetFlag(FLAGS_export_to).empty()) {
    return Fail(absl::InvalidArgumentError(
        "--diff_with and --export_to want --inspect_checkpoint"));
  }
  if (UsesEnsemble() && UsesSavedModel()) {
    return RunEnsemble(cluster, command_line);
  }
  if (absl::GetFlag(FLAGS_training).empty()) {
    return Fail(absl::InvalidArgumentError(
        "--training is missing: give it a training spec, for example "
        "worker/model/zoo/mnist_cnn.textproto"));
  }
  if (absl::GetFlag(FLAGS_placement_dry_run)) {
    return PreviewPlacement(absl::GetFlag(FLAGS_training),
                            Repeated(command_line, "set"),
                            std::max(1, cluster.spec.num_ps()));
  }
  // Credentials, also those of no keys, start threads.
  if (!absl::GetFlag(FLAGS_pipeline_dry_run)) StopSignals::Block();
  const auto keys = KeysFlag(cluster, clock);
  if (!keys.ok()) return Fail(keys.status());
  absl::StatusOr<TrainingSpec> training = LoadTrainingSpec(
      absl::GetFlag(FLAGS_training), Repeated(command_line, "set"));
  if (!training.ok()) return Fail(training.status());
  if (UsesSavedModel()) {
    return RunSavedModel(cluster, *training, /*members=*/{}, command_line);
  }
  const absl::Status trains = CheckSavedModelFlagsUnused();
  if (!trains.ok()) return Fail(trains);
  const absl::Status suits =
      CheckReplicationSuits(cluster.spec, training->replication());
  if (!suits.ok()) return Fail(suits);
  if (cluster.task.job() == kEvaluatorJob) {
    return RunEvaluator(cluster, *std::move(training),
                        CredentialsOf(keys->get()), clock);
  }
  absl::StatusOr<WorkerOptions> options =
      MakeWorkerOptions(cluster, *std::move(training), command_line);
  if (!options.ok()) return Fail(options.status());
  if (absl::GetFlag(FLAGS_pipeline_dry_run)) return PrintPipeline(*options);
  options->start_time = start_time;
  options->credentials = CredentialsOf(keys->get());
  return RunWorker(cluster, *std::move(options), clock);
}

int Main(const std::vector<std::string>& args) {
  SetUpProcess();
  // NCCL, which joins the cards of this process, would listen on the network.
  setenv("NCCL_SOCKET_IFNAME", "lo", /*overwrite=*/0);
  const MonotonicClock clock{};
  const absl::Time start_time = clock.Now();
  const CommandLine command_line =
      ParseCommandLine(args, DescribeCommandLine());
  std::fputs(command_line.out.c_str(), stdout);
  std::fputs(command_line.error.c_str(), stderr);
  if (command_line.exit_code.has_value()) return *command_line.exit_code;
  if (!absl::GetFlag(FLAGS_inspect_checkpoint).empty()) {
    return InspectCheckpoint(absl::GetFlag(FLAGS_inspect_checkpoint),
                             absl::GetFlag(FLAGS_diff_with),
                             absl::GetFlag(FLAGS_export_to));
  }
  if (absl::GetFlag(FLAGS_list) || absl::GetFlag(FLAGS_list_devices)) {
    return List();
  }

  // The links and servers say in better words what gRPC prints by itself.
  gpr_set_log_function([](gpr_log_func_args*) {});

  const absl::StatusOr<ResolvedCluster> cluster = ResolveOwnCluster();
  LogOptions log;
  if (cluster.ok()) log.task_name = TaskName(cluster->task);
  log.level = absl::GetFlag(FLAGS_log_level);
  log.no_color = !Environment("NO_COLOR").empty();
  const absl::Status logging = SetUpLogging(log);
  if (!logging.ok()) return Fail(logging);
  if (!cluster.ok()) return Fail(cluster.status());
  return Run(*cluster, command_line, clock, start_time);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::ExplainExhaustion("worker");
  muster::EndProcess(
      muster::Main(std::vector<std::string>(argv + 1, argv + argc)));
}
