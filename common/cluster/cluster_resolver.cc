#include "common/cluster/cluster_resolver.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/escape.h"
#include "common/base/read_file.h"
#include "common/base/status_macros.h"
#include "common/cluster/address.h"
#include "common/cluster/cluster_json.h"
#include "common/cluster/cluster_source.h"
#include "common/cluster/cluster_text.h"
#include "common/cluster/host_flags.h"
#include "common/cluster/task_id.h"

namespace muster {
namespace {

absl::StatusOr<ClusterSource> FlagSource(const ClusterOptions& options) {
  ClusterSource source;
  source.name = "--ps_hosts and --worker_hosts";
  ASSIGN_OR_RETURN(ClusterSpec spec,
                   ParseHostFlags(options.ps_hosts, options.worker_hosts));
  if (!spec.empty()) source.spec = std::move(spec);
  return source;
}

absl::StatusOr<ClusterSource> TaskFlagSource(const ClusterOptions& options) {
  ClusterSource source;
  source.name = "--job_name and --task_index";
  if (!options.job_name.empty()) {
    auto job = ParseJobName(options.job_name);
    if (!job.ok()) return Annotate(job.status(), "--job_name");
    source.job = *std::move(job);
  }
  if (options.task_index.empty() || options.task_index == kAnyTask) {
    return source;
  }
  int index = 0;
  if (!absl::SimpleAtoi(options.task_index, &index) || index < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--task_index must be a whole number, 0 or more, or ", kAnyTask,
        ", found '", EscapeForLog(options.task_index), "'"));
  }
  source.index = index;
  return source;
}

absl::StatusOr<ClusterSource> FileSource(const std::string& path) {
  ClusterSource source;
  source.name = absl::StrCat("--cluster=", path);
  if (path.empty()) return source;
  auto text = ReadFile(path);
  if (!text.ok()) return Annotate(text.status(), "--cluster");
  if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(*text), "{")) {
    ASSIGN_OR_RETURN(source, ParseClusterJson(*text, path));
    source.name = absl::StrCat("--cluster=", path);
  } else {
    ASSIGN_OR_RETURN(source.spec, ParseClusterText(*text, path));
  }
  if (!source.spec.has_value() || source.spec->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the file names no task; wanted at least one"));
  }
  return source;
}

constexpr char kContradiction[] = "; give one of the two, or make them agree";

absl::Status CheckTaskAgreement(const ClusterSource& a,
                                const ClusterSource& b) {
  if (a.job.has_value() && b.job.has_value() && *a.job != *b.job) {
    return absl::InvalidArgumentError(absl::StrCat(
        a.name, " and ", b.name, " contradict each other: the own job is '",
        *a.job, "' in the first and '", *b.job, "' in the second",
        kContradiction));
  }
  if (a.index.has_value() && b.index.has_value() && *a.index != *b.index) {
    return absl::InvalidArgumentError(absl::StrCat(
        a.name, " and ", b.name,
        " contradict each other: the own task index is ", *a.index,
        " in the first and ", *b.index, " in the second", kContradiction));
  }
  return absl::OkStatus();
}

absl::Status CheckAgreement(const ClusterSource& a, const ClusterSource& b) {
  RETURN_IF_ERROR(CheckTaskAgreement(a, b));
  if (!a.spec.has_value() || !b.spec.has_value() || *a.spec == *b.spec) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      a.name, " and ", b.name, " contradict each other: ",
      ClusterSpec::Difference(*a.spec, "the first", *b.spec, "the second"),
      kContradiction));
}

absl::Status CheckAllAgree(const std::vector<ClusterSource>& sources) {
  for (size_t i = 0; i < sources.size(); ++i) {
    for (size_t j = i + 1; j < sources.size(); ++j) {
      RETURN_IF_ERROR(CheckAgreement(sources[i], sources[j]));
    }
  }
  return absl::OkStatus();
}

// TF_CONFIG is one of a process: without the task it was cut short, and each of
// the job's processes would be its task 0.
absl::Status CheckIndexIsKnown(const ClusterSource& decides,
                               const std::string& job) {
  const size_t num_tasks = decides.spec->tasks(job).size();
  if (decides.name != "TF_CONFIG" || num_tasks < 2) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      decides.name, " names ", num_tasks, " tasks of job '", job,
      "' and not which of them this is; wanted \"task\": {\"type\": \"", job,
      "\", \"index\": 0} in it, or --task_index"));
}

// A task without a number is a worker that comes to a cluster of any.
absl::Status CheckMayBeAny(const ClusterSource& decides, const TaskId& task) {
  constexpr absl::string_view kWhat = "--task_index=any: ";
  const ClusterSpec& spec = *decides.spec;
  if (task.job() != kWorkerJob) {
    return absl::InvalidArgumentError(absl::StrCat(
        kWhat, "a task of job ", task.job(), " has a number; name it"));
  }
  if (!spec.takes_any_worker()) {
    return absl::InvalidArgumentError(absl::StrCat(
        kWhat, decides.name, " lists its workers (", spec.Summary(),
        "); name the index of one, or let whoever comes be one with "
        "\"worker\": \"any\" in the place of the list (--worker_hosts=any)"));
  }
  if (task.index() < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      kWhat, "TF_CONFIG says that this is ", TaskName(task), kContradiction));
}

// By default each worker would be worker 0, and so the chief.
absl::Status CheckWorkerIsNumbered(const ClusterSource& decides,
                                   const TaskId& task) {
  if (task.job() != kWorkerJob || !decides.spec->takes_any_worker()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      decides.name, " takes any worker (", decides.spec->Summary(),
      "), and does not say which one this is; wanted --task_index=any, or a "
      "number",
      decides.spec->tasks(kChiefJob).empty()
          ? ": --task_index=0 for the chief, which saves the model"
          : ""));
}

absl::StatusOr<TaskId> OwnTask(const ClusterOptions& options,
                               const std::vector<ClusterSource>& sources,
                               const ClusterSource& decides) {
  TaskId task = MakeTaskId(options.jobs.front(), -1);
  std::string job_source;
  // From the last to the first, so that the first decides.
  for (auto it = sources.rbegin(); it != sources.rend(); ++it) {
    if (it->index.has_value()) task.set_index(*it->index);
    if (!it->job.has_value()) continue;
    task.set_job(*it->job);
    job_source = it->name;
  }
  if (std::count(options.jobs.begin(), options.jobs.end(), task.job()) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(job_source, ": job '", task.job(),
                     "' is not one that this program runs: ",
                     absl::StrJoin(options.jobs, ", ")));
  }
  if (options.task_index == kAnyTask) {
    RETURN_IF_ERROR(CheckMayBeAny(decides, task));
    return task;
  }
  if (task.index() < 0) {
    RETURN_IF_ERROR(CheckIndexIsKnown(decides, task.job()));
    RETURN_IF_ERROR(CheckWorkerIsNumbered(decides, task));
    task.set_index(0);
  }
  return task;
}

absl::StatusOr<ResolvedCluster> ResolveStandalone(
    const ClusterOptions& options, const std::vector<ClusterSource>& sources) {
  for (const ClusterSource& source : sources) {
    if (source.instead.empty()) continue;
    // Started on many hosts, each would train for itself, as task 0.
    return absl::InvalidArgumentError(absl::StrCat(
        source.name, " has ", source.instead,
        ", but no cluster with tasks; wanted \"cluster\": {\"ps\": "
        "[\"h0:2222\"], \"worker\": [\"h1:2222\"]} in it, or no ",
        source.name, " at all for a process that trains alone"));
  }
  const ClusterSource& task_flags = sources.front();
  if (!options.can_be_standalone) {
    return absl::InvalidArgumentError(
        "no cluster is given; give --cluster=FILE, --ps_hosts and "
        "--worker_hosts, or TF_CONFIG");
  }
  if (task_flags.job.has_value() || task_flags.index.value_or(0) != 0 ||
      options.task_index == kAnyTask) {
    return absl::InvalidArgumentError(
        "--job_name or --task_index is given, but no cluster that it could "
        "be a task of; add --cluster=FILE, or --ps_hosts and --worker_hosts");
  }
  if (!options.standalone && !options.launcher.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.launcher,
        " says that this is one of several processes, but no cluster is given: "
        "each would train alone, as worker 0; give --cluster=FILE, or "
        "--ps_hosts and --worker_hosts (srun: scripts/muster task), or "
        "--standalone for as many trainings"));
  }
  return ResolvedCluster{ClusterSpec(), MakeTaskId(options.jobs.front(), 0),
                         "standalone"};
}

// The sources that name something, in order of precedence.
absl::StatusOr<std::vector<ClusterSource>> ReadSources(
    const ClusterOptions& options) {
  std::vector<ClusterSource> sources;
  ASSIGN_OR_RETURN(ClusterSource task_flags, TaskFlagSource(options));
  ASSIGN_OR_RETURN(ClusterSource host_flags, FlagSource(options));
  ASSIGN_OR_RETURN(ClusterSource file, FileSource(options.cluster_file));
  ASSIGN_OR_RETURN(ClusterSource tf_config, ParseTfConfig(options.tf_config));
  sources.push_back(std::move(task_flags));
  sources.push_back(std::move(host_flags));
  sources.push_back(std::move(file));
  sources.push_back(std::move(tf_config));
  return sources;
}

// localhost and 0.0.0.0 are another machine on each host: none but its own
// tasks could connect to one that has such an address, and it would wait for
// the others as they for it.
absl::Status CheckReach(const ClusterSource& source) {
  std::string here;
  std::string elsewhere;
  for (const char* const job : {kPsJob, kChiefJob, kWorkerJob, kEvaluatorJob}) {
    for (const auto& [index, text] : source.spec->tasks(job)) {
      ASSIGN_OR_RETURN(const Address address, ParseAddress(text));
      std::string* const first =
          IsLoopback(address) || IsAny(address) ? &here : &elsewhere;
      if (!first->empty()) continue;
      *first = absl::StrCat(TaskName(MakeTaskId(job, index)), " is ", text);
    }
  }
  if (here.empty() || elsewhere.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(source.name, ": ", here,
                   ", which means another machine on each host, "
                   "and ",
                   elsewhere,
                   "; list the address by which the other hosts reach "
                   "that task (--bind=ADDRESS has it listen at another one)"));
}

// A task that need not be listed: an evaluator, to which nobody talks, and a
// worker where any may come.
bool MayBeUnlisted(const ClusterSpec& spec, const TaskId& task) {
  if (task.job() == kWorkerJob) {
    return spec.takes_any_worker();
  }
  return task.job() == kEvaluatorJob && task.index() == 0 &&
         spec.tasks(kEvaluatorJob).empty();
}

absl::Status CheckIndexOfAny(const ClusterSpec& spec, const TaskId& task) {
  if (task.job() != kWorkerJob || !spec.takes_any_worker() ||
      task.index() < ClusterSpec::kMaxTasks) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "own task, in a cluster that takes any worker: --task_index must be 0 "
      "to ",
      ClusterSpec::kMaxTasks - 1, ", or ", kAnyTask, ", found ", task.index()));
}

// The cluster of this source, with somebody who holds the parameters.
absl::StatusOr<ClusterSpec> SpecOf(const ClusterSource& source,
                                   const ClusterOptions& options) {
  RETURN_IF_ERROR(CheckReach(source));
  if (source.spec->num_ps() > 0) return *source.spec;
  if (options.can_all_reduce) {
    auto spec = source.spec->ForAllReduce();
    return spec.ok() ? spec : Annotate(spec.status(), source.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      source.name,
      ": the cluster has no ps task: its workers hold the parameters "
      "(replication { all_reduce {} }), and no ps_server is to be started; or "
      "give the cluster ps tasks"));
}

}  // namespace

std::string LauncherOfSeveral(
    absl::FunctionRef<std::string(const char*)> environment) {
  struct Variable {
    const char* name;
    int least;
  };
  // An index from 0, without the number of processes, is the last.
  constexpr Variable kVariables[] = {
      {"SLURM_STEP_NUM_TASKS", 2}, {"OMPI_COMM_WORLD_SIZE", 2}, {"PMI_SIZE", 2},
      {"WORLD_SIZE", 2},           {"JOB_COMPLETION_INDEX", 1},
  };
  for (const Variable& variable : kVariables) {
    const std::string value = environment(variable.name);
    int number = 0;
    if (absl::SimpleAtoi(value, &number) && number >= variable.least) {
      return absl::StrCat(variable.name, "=", number);
    }
  }
  return "";
}

absl::StatusOr<ResolvedCluster> ResolveCluster(const ClusterOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<ClusterSource> sources,
                   ReadSources(options));
  const auto decides =
      std::find_if(sources.begin(), sources.end(),
                   [](const ClusterSource& s) { return s.spec.has_value(); });
  if (decides == sources.end()) {
    return ResolveStandalone(options, sources);
  }
  if (options.standalone) {
    return absl::InvalidArgumentError(
        absl::StrCat("--standalone and ", decides->name,
                     " contradict each other: one process, or a cluster of ",
                     decides->spec->Summary(), kContradiction));
  }
  RETURN_IF_ERROR(CheckAllAgree(sources));
  ASSIGN_OR_RETURN(const TaskId task, OwnTask(options, sources, *decides));
  ASSIGN_OR_RETURN(ClusterSpec spec, SpecOf(*decides, options));
  RETURN_IF_ERROR(CheckIndexOfAny(spec, task));
  const auto address = spec.AddressOf(task);
  if (!address.ok() && !MayBeUnlisted(spec, task)) {
    return Annotate(address.status(),
                    absl::StrCat("own task, by ", decides->name));
  }
  return ResolvedCluster{std::move(spec), task, decides->name};
}

}  // namespace muster
