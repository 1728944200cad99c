#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "common/base/logging.h"
#include "common/base/printing.h"
#include "common/base/reporter.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_resolver.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/task_id.h"
#include "common/config/namespace_name.h"
#include "common/process/exit_code.h"
#include "common/process/stop_latch.h"
#include "common/process/stop_signals.h"
#include "common/rpc/credentials.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/incarnation.h"
#include "common/rpc/link_choice.h"
#include "common/rpc/protocol.h"
#include "common/rpc/server/task_flags.h"
#include "common/tls/certs_folder.h"
#include "common/tls/task_keys.h"
#include "spdlog/spdlog.h"
#include "worker/client/call_status.h"
#include "worker/task/assigned_index.h"
#include "worker/task/evaluator_task.h"
#include "worker/task/network_check.h"
#include "worker/task/signal_target.h"
#include "worker/task/worker_options.h"
#include "worker/training/any_workers.h"
#include "worker/training/replication_settings.h"
#include "worker/training/training_spec.h"
#include "worker/verb/device_flags.h"
#include "worker/verb/model_flags.h"
#include "worker/verb/worker_verb.h"
#include "worker/worker_process.h"

ABSL_FLAG(std::string, namespace, "",
          "Train in this namespace of ps tasks that serve several jobs "
          "(ps_server --keep_serving): letters, digits and _./-");
ABSL_FLAG(bool, standalone, false,
          "Train alone in this process, without ps tasks and ports.");
ABSL_FLAG(std::string, read_from, "",
          "Namespace of the ps tasks whose parameters a new training starts "
          "from, matched as those of --init_from; '' in quotes: the nameless "
          "one. Only the chief uses it.");
ABSL_FLAG(std::string, profile_steps, "",
          "Write a timeline of these steps of this process, counted from 1, to "
          "profile-JOB-INDEX.json in --train_dir: --profile_steps=10-29, or "
          "how many from the tenth, --profile_steps=20. Pull, compute, push, "
          "what a GPU does; open it in ui.perfetto.dev or chrome://tracing.");
ABSL_FLAG(absl::Duration, progress_every, absl::Seconds(10),
          "Between progress lines where there is no terminal; 0: each step.");

namespace muster {
namespace {

// Steps before it are slower than the rest.
constexpr int64_t kProfiledFrom = 10;

CommandLineOptions Describe() {
  CommandLineOptions options = TaskCommandLine("worker");
  options.summary = absl::StrCat(
      "Trains a model: on the ps tasks of a cluster, or alone.\n\n"
      "  worker --standalone --training=worker/model/zoo/mnist_cnn.textproto "
      "--train_dir=run1\n"
      "  worker --cluster=cluster_configs/local_1ps_2worker.json "
      "--task_index=0 \\\n"
      "      --training=worker/model/zoo/mnist_cnn.textproto "
      "--train_dir=run1\n"
      "  worker --cluster=cluster_configs/local_1ps_any_worker.json "
      "--task_index=any \\\n"
      "      --training=worker/model/zoo/mnist_cnn.textproto\n\n"
      "With a verb, and flags of its own (worker VERB --help):\n\n"
      "  worker evaluate  the figures of a trained model on the test half\n"
      "  worker predict   what a trained model says of each row\n"
      "  worker devices   what a model can compute on\n"
      "  worker pipeline  what the stages of a pipeline cost\n\n",
      kExitCodesHelp);
  FlagGroup cluster = ClusterFlagGroup();
  cluster.flags.insert(cluster.flags.end(), {"namespace", "standalone"});
  FlagGroup init = InitFlagGroup();
  init.flags.push_back("read_from");
  FlagGroup printing = LogFlagGroup();
  printing.flags.insert(printing.flags.begin(),
                        {"progress_every", "profile_steps"});
  options.groups = {cluster,
                    TrainingFlagGroup(),
                    init,
                    DevicesFlagGroup(),
                    GpuFlagGroup(),
                    NetworkFlagGroup(),
                    WaitingFlagGroup(),
                    printing};
  DescribeModelFlags(&options);
  options.flags_from_zero = {"progress_every"};
  return options;
}

absl::StatusOr<ResolvedCluster> ResolveOwnCluster() {
  ClusterOptions options = ClusterFlags();
  options.standalone = absl::GetFlag(FLAGS_standalone);
  options.jobs = {kWorkerJob, kChiefJob, kEvaluatorJob};
  options.can_be_standalone = true;
  options.can_all_reduce = true;
  return ResolveCluster(options);
}

bool IsNetworkTrusted() {
  return absl::GetFlag(FLAGS_allow_insecure_network) ||
         !absl::GetFlag(FLAGS_certs_dir).empty();
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

PrintingOptions PrintingFlags(const TaskId& self) {
  PrintingOptions options;
  options.label = absl::StrCat(self.job(), " ", self.index());
  options.no_color = Environment("NO_COLOR");
  options.columns = Environment("COLUMNS");
  return options;
}

// Errors: InvalidArgument for what is neither a count nor FIRST-LAST.
absl::StatusOr<ProfiledSteps> ProfileFlag() {
  ProfiledSteps steps;
  const std::string text = absl::GetFlag(FLAGS_profile_steps);
  if (text.empty()) return steps;
  const std::vector<std::string> ends = absl::StrSplit(text, '-');
  int64_t last = 0;
  if (ends.size() == 1 && absl::SimpleAtoi(text, &steps.count) &&
      steps.count > 0) {
    steps.first = kProfiledFrom;
    return steps;
  }
  if (ends.size() == 2 && absl::SimpleAtoi(ends[0], &steps.first) &&
      absl::SimpleAtoi(ends[1], &last) && steps.first > 0 &&
      last >= steps.first) {
    steps.count = last - steps.first + 1;
    return steps;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--profile_steps: wanted how many steps, or FIRST-LAST, counted from 1, "
      "found '",
      text, "'"));
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
  ProgressOutput output = MakePrinting(PrintingFlags(cluster.task));
  options.reporter = std::move(output.reporter);
  options.show_live = std::move(output.show_live);
  ASSIGN_OR_RETURN(options.device_choice, DeviceFlags());
  ASSIGN_OR_RETURN(options.listen_address,
                   CheckNetwork(cluster.spec, cluster.task,
                                {absl::GetFlag(FLAGS_bind), IsNetworkTrusted()},
                                Reporter(&LogLine)));
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
    const ResolvedCluster& cluster, RunTraining run,
    const CommandLine& command_line) {
  ASSIGN_OR_RETURN(
      WorkerOptions options,
      MakeTaskOptions<WorkerOptions>(cluster, std::move(run.training)));
  ASSIGN_OR_RETURN(options.profiled, ProfileFlag());
  options.progress_every = absl::GetFlag(FLAGS_progress_every);
  ASSIGN_OR_RETURN(
      options.init,
      InitFlags(command_line, !absl::GetFlag(FLAGS_read_from).empty()));
  ASSIGN_OR_RETURN(options.read_from, ReadFromFlag(cluster.spec, options.init));
  options.overrides = Repeated(command_line, "set");
  options.stop_source =
      StopSource(options.training, run.source, options.overrides);
  return options;
}

// The flags that steps and several towers alone have.
absl::Status CheckNoStepFlags() {
  if (!absl::GetFlag(FLAGS_profile_steps).empty()) {
    return absl::InvalidArgumentError(
        "--profile_steps: an evaluator takes no steps; give it to a worker");
  }
  if (absl::GetFlag(FLAGS_devices).empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--devices: an evaluator has one; use --device");
}

int RunEvaluator(const ResolvedCluster& cluster, TrainingSpec training,
                 const TaskCredentials& credentials,
                 const MonotonicClock& clock) {
  auto options =
      MakeTaskOptions<EvaluatorOptions>(cluster, std::move(training));
  if (!options.ok()) return FailVerb(options.status());
  const absl::Status fits = CheckNoStepFlags();
  if (!fits.ok()) return FailVerb(fits);
  StopLatch latch;
  options->clock = &clock;
  options->latch = &latch;
  options->credentials = credentials;
  SignalTarget target;
  const StopSignals signals([&target](int signal) { target.OnSignal(signal); },
                            options->reporter);
  const auto task = EvaluatorTask::Create(*std::move(options));
  if (!task.ok()) return FailVerb(task.status());
  target.HandTo([&latch](int signal) {
    latch.Stop({128 + signal, absl::StrCat("signal ", signal)});
  });
  return (*task)->Run();
}

absl::StatusOr<int> RunWorker(const ResolvedCluster& cluster,
                              WorkerOptions options,
                              const MonotonicClock& clock) {
  ASSIGN_OR_RETURN(const LinkChoice link, LinkFlag(cluster));
  options.clock = &clock;
  return RunWorkerProcess(std::move(options),
                          {link, absl::GetFlag(FLAGS_worker_timeout)});
}

// The index of a worker that has none yet (--task_index=any): its certificate's
// or, without keys, the one that ps task 0 gives this start of it.
absl::StatusOr<AssignTaskReply> OwnIndex(const ClusterSpec& cluster,
                                         uint64_t incarnation,
                                         const MonotonicClock& clock) {
  const std::string dir = absl::GetFlag(FLAGS_certs_dir);
  if (!dir.empty()) {
    AssignTaskReply of_certificate;
    ASSIGN_OR_RETURN(const int32_t index, OwnIndexIn(dir, kWorkerJob));
    of_certificate.set_index(index);
    return of_certificate;
  }
  UnnumberedWorker worker;
  ASSIGN_OR_RETURN(worker.job_namespace, NamespaceFlag(cluster));
  worker.incarnation = incarnation;
  worker.ps_address = cluster.ps_addresses().front();
  worker.max_wait = absl::GetFlag(FLAGS_max_wait);
  worker.reporter = Reporter(&LogLine);
  worker.clock = &clock;
  worker.is_network_trusted = IsNetworkTrusted();
  SignalTarget target;
  const StopSignals signals([&target](int signal) { target.OnSignal(signal); },
                            worker.reporter);
  return AcquireIndex(worker);
}

// Gives the task its number, or returns how its job has ended; "" if it has
// not. Errors: OwnIndex's, and InvalidArgument for the chief, who has to be
// told that it is one.
absl::StatusOr<std::string> NumberTask(uint64_t incarnation,
                                       const MonotonicClock& clock,
                                       ResolvedCluster* cluster) {
  if (cluster->task.index() >= 0) return "";
  ASSIGN_OR_RETURN(AssignTaskReply own,
                   OwnIndex(cluster->spec, incarnation, clock));
  if (!own.job_end().empty()) return EscapeForLog(own.job_end());
  cluster->task.set_index(own.index());
  if (cluster->task == cluster->spec.chief()) {
    return absl::InvalidArgumentError(
        "--task_index=any: the certificate is that of worker 0, the chief, "
        "which saves the model: start it with --task_index=0");
  }
  RETURN_IF_ERROR(SetUpTaskLogging(TaskName(cluster->task)));
  spdlog::info("this worker is {}, as {} says", TaskName(cluster->task),
               absl::GetFlag(FLAGS_certs_dir).empty()
                   ? TaskName(MakeTaskId(kPsJob, 0))
                   : "its certificate");
  return "";
}

// Of a worker that got no number.
int FailNumber(const absl::Status& status) {
  const int exit_code = FailVerb(status);
  const bool may_come = absl::IsUnavailable(status) || IsDamaged(status) ||
                        absl::IsResourceExhausted(status);
  return may_come ? kExitRetryable : exit_code;
}

absl::Status CheckSuits(const ClusterSpec& cluster,
                        const TrainingSpec& training) {
  RETURN_IF_ERROR(CheckReplicationSuits(cluster, training.replication()));
  return CheckSuitsAnyWorkers(cluster, training);
}

// Numbers the task if need be, and runs it. Errors: those of its options, and
// as RunWorkerProcess.
absl::StatusOr<int> RunNumbered(ResolvedCluster cluster, RunTraining run,
                                const CommandLine& command_line,
                                absl::Time start_time,
                                const MonotonicClock& clock) {
  const uint64_t incarnation = NewIncarnation();
  const bool is_numbered =
      cluster.task.index() < 0 && absl::GetFlag(FLAGS_certs_dir).empty();
  const auto job_end = NumberTask(incarnation, clock, &cluster);
  if (!job_end.ok()) return FailNumber(job_end.status());
  if (!job_end->empty()) {
    spdlog::info("the job is at its end ({}) and needs no more workers",
                 *job_end);
    return kExitDone;
  }
  ASSIGN_OR_RETURN(const auto keys, KeysFlag(cluster, clock));
  if (cluster.task.job() == kEvaluatorJob) {
    return RunEvaluator(cluster, std::move(run.training),
                        CredentialsOf(keys.get()), clock);
  }
  ASSIGN_OR_RETURN(WorkerOptions options,
                   MakeWorkerOptions(cluster, std::move(run), command_line));
  options.start_time = start_time;
  // That which has the number.
  options.incarnation = incarnation;
  options.is_numbered = is_numbered;
  options.credentials = CredentialsOf(keys.get());
  return RunWorker(cluster, std::move(options), clock);
}

int RunTask(const ResolvedCluster& cluster, const CommandLine& command_line,
            const MonotonicClock& clock) {
  const absl::Time start_time = clock.Now();
  const absl::StatusOr<RunTraining> run = RunTrainingFlags(command_line);
  if (!run.ok()) return FailVerb(run.status());
  if (cluster.spec.empty() || cluster.task == cluster.spec.chief() ||
      cluster.task.job() == kEvaluatorJob) {
    SayChanges(*run, Reporter(&LogLine));
  }
  const absl::Status suits = CheckSuits(cluster.spec, run->training);
  if (!suits.ok()) return FailVerb(suits);
  // Credentials, also those of no keys, start threads.
  StopSignals::Block();
  while (true) {
    const absl::StatusOr<int> exit_code =
        RunNumbered(cluster, *run, command_line, start_time, clock);
    if (exit_code.ok()) return *exit_code;
    if (!IsReplaced(exit_code.status())) return FailVerb(exit_code.status());
    spdlog::info(
        "another worker has the number of this one: asking for another number");
  }
}

int Run(const CommandLine& command_line) {
  const MonotonicClock clock{};
  const absl::StatusOr<ResolvedCluster> cluster = ResolveOwnCluster();
  const bool is_numbered = cluster.ok() && cluster->task.index() >= 0;
  const absl::Status logging =
      SetUpTaskLogging(is_numbered ? TaskName(cluster->task) : "");
  if (!logging.ok()) return FailVerb(logging);
  if (!cluster.ok()) return FailVerb(cluster.status());
  return RunTask(*cluster, command_line, clock);
}

}  // namespace

WorkerVerb TrainVerb() { return {"", &Describe, &Run}; }

}  // namespace muster
