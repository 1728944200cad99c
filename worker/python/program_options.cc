#include "worker/python/program_options.h"

#include <string>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "common/base/logging.h"
#include "common/base/max_count.h"
#include "common/base/printing.h"
#include "common/base/reporter.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/task_id.h"
#include "common/config/local_path.h"
#include "common/config/namespace_name.h"
#include "common/config/text_format.h"
#include "common/process/environment.h"
#include "common/rpc/credentials.h"
#include "common/rpc/incarnation.h"
#include "common/rpc/link_choice.h"
#include "common/tensor/shape.h"
#include "common/tls/certs_folder.h"
#include "spdlog/spdlog.h"
#include "worker/client/link/shard_link.h"
#include "worker/task/assigned_index.h"
#include "worker/task/network_check.h"
#include "worker/training/any_workers.h"
#include "worker/training/check_range.h"
#include "worker/training/replication_settings.h"
#include "worker/training/schedule_length.h"
#include "worker/training/without_model.h"

namespace muster {
namespace {

constexpr char kSource[] = "program";
constexpr int64_t kMaxStepRows = 1 << 24;
constexpr int64_t kMostDim = 65536;
constexpr int32_t kMaxStepsAhead = 1024;
constexpr double kDefaultMaxWaitSeconds = 7200;
constexpr double kDefaultProgressSeconds = 10;

ClusterOptions ClusterOptionsOf(const ProgramSpec& spec) {
  ClusterOptions options;
  options.cluster_file = spec.cluster();
  options.ps_hosts = spec.ps_hosts();
  options.worker_hosts = spec.worker_hosts();
  options.job_name = spec.job_name();
  options.task_index = spec.task_index();
  options.tf_config = Environment("TF_CONFIG");
  options.launcher = LauncherOfSeveral(&Environment);
  options.jobs = {kWorkerJob, kChiefJob};
  // Found and refused here, in words that fit a program.
  options.can_be_standalone = true;
  options.can_all_reduce = true;
  return options;
}

absl::Status CheckHasPs(const ResolvedCluster& cluster) {
  if (!cluster.spec.empty() && !cluster.spec.is_all_reduce()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      cluster.spec.empty() ? "no cluster is given"
                           : absl::StrCat(cluster.source, " has no ps tasks (",
                                          cluster.spec.Summary(), ")"),
      ": a program's parameters are on ps tasks; give ps_hosts (in Python "
      "ps=\"host:port\", or muster.local(ps=1) for tasks on this machine), "
      "cluster, or TF_CONFIG"));
}

absl::Status CheckPaths(const ProgramSpec& spec) {
  RETURN_IF_ERROR(CheckLocalPath("cluster", spec.cluster()));
  RETURN_IF_ERROR(CheckLocalPath("certs_dir", spec.certs_dir()));
  return CheckLocalPath("train_dir", spec.train_dir());
}

// A worker without a number has that of its certificate.
absl::Status NumberByCertificate(const std::string& certs_dir,
                                 ResolvedCluster* cluster) {
  TaskId& task = cluster->task;
  if (certs_dir.empty() || task.index() >= 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int32_t index, OwnIndexIn(certs_dir, kWorkerJob));
  task.set_index(index);
  if (task != cluster->spec.chief()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "task_index: \"any\": the certificate is that of worker 0, the chief, "
      "which saves the model: give task_index: \"0\"");
}

absl::Status CheckTensor(const ProgramTensor& tensor) {
  if (tensor.name().empty()) {
    return absl::InvalidArgumentError("each tensor wants a name, found ''");
  }
  const std::string name =
      absl::StrCat("tensor '", EscapeForLog(tensor.name()), "'");
  const auto shape = Shape::Create(tensor.shape());
  if (!shape.ok()) return Annotate(shape.status(), name);
  if (shape->num_elements() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": each size of its shape must be 1 or more, found ",
                   shape->ToString()));
}

absl::Status CheckUnique(absl::string_view kind, absl::string_view name,
                         absl::flat_hash_set<absl::string_view>* names) {
  if (names->insert(name).second) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(kind, " '", EscapeForLog(name),
                   "' is there twice; each tensor and table wants a name of "
                   "its own"));
}

absl::Status CheckTensors(const ProgramSpec& spec) {
  absl::flat_hash_set<absl::string_view> names;
  bool is_trained = spec.table_size() > 0;
  for (const ProgramTensor& tensor : spec.tensor()) {
    RETURN_IF_ERROR(CheckTensor(tensor));
    RETURN_IF_ERROR(CheckUnique("tensor", tensor.name(), &names));
    is_trained = is_trained || !tensor.is_state();
  }
  for (const ProgramTable& table : spec.table()) {
    RETURN_IF_ERROR(CheckTable(table.name(), table.dim()));
    RETURN_IF_ERROR(CheckUnique("table", table.name(), &names));
  }
  if (is_trained) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a program wants at least one tensor that is trained (not is_state), "
      "found ",
      spec.tensor_size(), " tensors and none"));
}

// Nobody deals rows then.
absl::Status CheckWithoutRows(const ProgramSpec& spec) {
  constexpr char kAdvice[] =
      ": without epoch_rows nobody knows how many rows an epoch has; ";
  if (spec.step_rows() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("step_rows", kAdvice, "set epoch_rows, too"));
  }
  if (spec.steps_ahead() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("steps_ahead", kAdvice, "set epoch_rows, too"));
  }
  if (spec.training().stop().epochs() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "stop.epochs", kAdvice,
        "set epoch_rows and step_rows (in Python rows= and batch_size=, or "
        "shard), or stop.steps or stop.seconds"));
  }
  return absl::OkStatus();
}

absl::Status CheckRows(const ProgramSpec& spec) {
  RETURN_IF_ERROR(CheckCount("epoch_rows", spec.epoch_rows()));
  if (spec.epoch_rows() == 0) return CheckWithoutRows(spec);
  RETURN_IF_ERROR(CheckRange<int64_t>(
      "step_rows", spec.step_rows(), 1, kMaxStepRows,
      absl::StrCat("from 1 to ", kMaxStepRows, " with epoch_rows")));
  return CheckRange<int32_t>("steps_ahead", spec.steps_ahead(), 0,
                             kMaxStepsAhead,
                             absl::StrCat("from 0 to ", kMaxStepsAhead));
}

absl::StatusOr<absl::Duration> Seconds(absl::string_view field, double seconds,
                                       double if_zero) {
  RETURN_IF_ERROR(CheckFiniteNotNegative(field, seconds));
  return absl::Seconds(seconds == 0 ? if_zero : seconds);
}

void Print(const TaskId& self, WorkerOptions* options) {
  PrintingOptions printing;
  printing.label = self.index() < 0
                       ? self.job()
                       : absl::StrCat(self.job(), " ", self.index());
  printing.no_color = Environment("NO_COLOR");
  printing.columns = Environment("COLUMNS");
  ProgressOutput output = MakePrinting(printing);
  options->reporter = std::move(output.reporter);
  options->show_live = std::move(output.show_live);
}

absl::StatusOr<WorkerOptions> WorkerOptionsOf(const ProgramSpec& spec,
                                              const ResolvedCluster& cluster) {
  WorkerOptions options;
  options.self = cluster.task;
  options.cluster = cluster.spec;
  options.clock = SystemClock();
  options.start_time = options.clock->Now();
  options.incarnation = NewIncarnation();
  options.stop_source = "the program";
  options.train_dir = spec.train_dir();
  options.job_namespace = spec.namespace_();
  RETURN_IF_ERROR(CheckNamespaceName("namespace", options.job_namespace));
  ASSIGN_OR_RETURN(options.max_wait,
                   Seconds("max_wait_seconds", spec.max_wait_seconds(),
                           kDefaultMaxWaitSeconds));
  ASSIGN_OR_RETURN(
      options.progress_every,
      Seconds("progress_every_seconds", spec.progress_every_seconds(),
              kDefaultProgressSeconds));
  Print(cluster.task, &options);
  const auto training = CompleteProgramTraining(spec.training());
  if (!training.ok()) return Annotate(training.status(), "training");
  options.training = *training;
  RETURN_IF_ERROR(
      CheckReplicationSuits(cluster.spec, options.training.replication()));
  RETURN_IF_ERROR(CheckSuitsAnyWorkers(cluster.spec, options.training));
  return options;
}

bool IsNetworkTrusted(const ProgramSpec& spec) {
  return spec.allow_insecure_network() || !spec.certs_dir().empty();
}

// Lines have the task's name from now on. Others of the process may be using
// the logger before it, which stays.
void NameLog(const TaskId& task) {
  static absl::once_flag once;
  absl::call_once(once, [&task] {
    static const auto& before =
        *new std::shared_ptr<spdlog::logger>(spdlog::default_logger());
    static_cast<void>(before);
    LogOptions log;
    log.task_name = TaskName(task);
    log.no_color = !Environment("NO_COLOR").empty();
    SetUpLogging(log).IgnoreError();
  });
}

// Asks ps task 0, as there are no keys. A task without a number: the job is at
// its end.
absl::StatusOr<TaskId> NumberByPs(const WorkerOptions& options,
                                  bool is_network_trusted) {
  UnnumberedWorker worker;
  worker.job_namespace = options.job_namespace;
  worker.incarnation = options.incarnation;
  worker.ps_address = options.cluster.ps_addresses().front();
  worker.max_wait = options.max_wait;
  worker.reporter = Reporter(&LogLine);
  worker.clock = options.clock;
  worker.latch = options.latch;
  worker.is_network_trusted = is_network_trusted;
  ASSIGN_OR_RETURN(const AssignTaskReply own, AcquireIndex(worker));
  TaskId task = options.self;
  if (!own.job_end().empty()) {
    spdlog::info("the job is at its end ({}) and needs no more workers",
                 EscapeForLog(own.job_end()));
    return task;
  }
  task.set_index(own.index());
  NameLog(task);
  spdlog::info("this worker is {}, as {} says", TaskName(task),
               TaskName(MakeTaskId(kPsJob, 0)));
  return task;
}

absl::Status SetLinks(const ProgramSpec& spec, ProgramOptions* options) {
  ASSIGN_OR_RETURN(const LinkChoice link,
                   ParseLinkChoice(spec.link().empty() ? "auto" : spec.link()));
  options->number_task =
      [trusted = IsNetworkTrusted(spec)](const WorkerOptions& worker) {
        return NumberByPs(worker, trusted);
      };
  options->make_links =
      [link](const WorkerOptions& worker) -> absl::StatusOr<WorkerLinks> {
    return MakeClusterLinks(worker.cluster, worker.credentials, link,
                            Reporter(&LogLine), worker.clock);
  };
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ResolvedProgram> ResolveProgram(absl::string_view text) {
  ResolvedProgram program;
  RETURN_IF_ERROR(ParseTextProto(text, kSource, &program.spec));
  RETURN_IF_ERROR(CheckPaths(program.spec));
  ASSIGN_OR_RETURN(program.cluster,
                   ResolveCluster(ClusterOptionsOf(program.spec)));
  RETURN_IF_ERROR(CheckHasPs(program.cluster));
  RETURN_IF_ERROR(
      NumberByCertificate(program.spec.certs_dir(), &program.cluster));
  return program;
}

absl::StatusOr<KeyedProgram> MakeProgramOptions(ResolvedProgram program) {
  const ProgramSpec& spec = program.spec;
  const ResolvedCluster& cluster = program.cluster;
  KeyedProgram result;
  ProgramOptions& options = result.options;
  RETURN_IF_ERROR(CheckTensors(spec));
  RETURN_IF_ERROR(CheckRows(spec));
  ASSIGN_OR_RETURN(options.worker, WorkerOptionsOf(spec, cluster));
  ASSIGN_OR_RETURN(
      options.worker.listen_address,
      CheckNetwork(cluster.spec, cluster.task,
                   {/*bind=*/"", IsNetworkTrusted(spec)}, Reporter(&LogLine)));
  ASSIGN_OR_RETURN(result.keys,
                   KeysOfTask(spec.certs_dir(), cluster.task,
                              Reporter(&LogLine), options.worker.clock));
  options.worker.credentials = CredentialsOf(result.keys.get());
  options.tensors = {spec.tensor().begin(), spec.tensor().end()};
  options.tables = {spec.table().begin(), spec.table().end()};
  options.epoch_rows = spec.epoch_rows();
  options.step_rows = spec.step_rows();
  options.steps_ahead = spec.steps_ahead();
  options.in_order = spec.in_order();
  options.settings = spec.settings();
  RETURN_IF_ERROR(SetLinks(spec, &options));
  return result;
}

absl::Status CheckTable(const std::string& name, int64_t dim) {
  if (name.empty()) {
    return absl::InvalidArgumentError("each table wants a name, found ''");
  }
  return CheckRange<int64_t>(
      absl::StrCat("table '", EscapeForLog(name), "': dim"), dim, 1, kMostDim,
      absl::StrCat("from 1 to ", kMostDim));
}

std::vector<int64_t> ElementsOf(absl::Span<const ProgramTensor> tensors) {
  std::vector<int64_t> elements;
  for (const ProgramTensor& tensor : tensors) {
    elements.push_back(NumElements(tensor.shape()));
  }
  return elements;
}

}  // namespace muster
