#include "common/cluster/cluster_spec.h"

#include <functional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/cluster/address.h"
#include "common/cluster/task_id.h"

namespace muster {
namespace {

using Jobs = std::map<std::string, ClusterSpec::Tasks, std::less<>>;

absl::Status CheckTask(const std::string& job, int32_t index,
                       const std::string& address) {
  const std::string name = TaskName(MakeTaskId(job, index));
  if (index < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": a task index must not be negative"));
  }
  return Annotate(ParseAddress(address).status(), name);
}

// Of a host, as ParseAddress has it: peers compare addresses, and dial them.
std::string WithoutFinalDot(std::string address) {
  const size_t colon = address.rfind(':');
  if (colon > 0 && address[colon - 1] == '.') address.erase(colon - 1, 1);
  return address;
}

absl::Status CheckAddressesUnique(const Jobs& jobs) {
  // Names of hosts do not depend on case.
  std::map<std::string, std::string> users;
  for (const auto& [job, tasks] : jobs) {
    for (const auto& [index, address] : tasks) {
      const std::string name = TaskName(MakeTaskId(job, index));
      const auto [it, is_new] =
          users.emplace(absl::AsciiStrToLower(address), name);
      if (!is_new) {
        return absl::InvalidArgumentError(
            absl::StrCat("duplicate address '", address, "': ", it->second,
                         " and ", name, " both have it"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const Jobs& jobs) {
  int num_tasks = 0;
  for (const auto& [job, tasks] : jobs) {
    num_tasks += static_cast<int>(tasks.size());
    if (tasks.size() > 1 && (job == kChiefJob || job == kEvaluatorJob)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "job '", job, "' may have at most one task, found ", tasks.size()));
    }
  }
  if (num_tasks > ClusterSpec::kMaxTasks) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cluster has ", num_tasks, " tasks, at most ",
                     ClusterSpec::kMaxTasks, " are supported"));
  }
  return absl::OkStatus();
}

absl::Status CheckNoGaps(absl::string_view job,
                         const ClusterSpec::Tasks& tasks) {
  const auto size = static_cast<int32_t>(tasks.size());
  if (size == 0 || tasks.rbegin()->first == size - 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(job, " tasks must be numbered from 0 without gaps, found ",
                   size, size == 1 ? " task" : " tasks",
                   " of which the last has index ", tasks.rbegin()->first));
}

absl::Status CheckPs(const Jobs& jobs) {
  const auto ps = jobs.find(kPsJob);
  return ps == jobs.end() ? absl::OkStatus() : CheckNoGaps(kPsJob, ps->second);
}

std::string Indices(const ClusterSpec::Tasks& tasks) {
  return absl::StrJoin(tasks, ", ", [](std::string* out, const auto& task) {
    absl::StrAppend(out, task.first);
  });
}

std::string AddressOrNone(const ClusterSpec& spec, absl::string_view job,
                          int32_t index) {
  const ClusterSpec::Tasks& tasks = spec.tasks(job);
  const auto it = tasks.find(index);
  if (it != tasks.end()) return it->second;
  return job == kWorkerJob && spec.takes_any_worker() ? "whoever comes"
                                                      : "absent";
}

// Checks a job of whoever comes.
absl::Status CheckAnyTask(const JobDef& job, absl::string_view name) {
  if (!job.any_task()) return absl::OkStatus();
  if (name != kWorkerJob) {
    return absl::InvalidArgumentError(absl::StrCat(
        "job '", name,
        "' takes any task, which job worker alone may: list its addresses"));
  }
  if (job.tasks().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "job 'worker' takes any task, and lists ", job.tasks_size(),
      ": leave the list out for workers that come and go, or any_task"));
}

}  // namespace

absl::StatusOr<ClusterSpec> ClusterSpec::Create(const ClusterDef& def) {
  ClusterSpec spec;
  bool takes_any = false;
  for (const JobDef& job : def.job()) {
    ASSIGN_OR_RETURN(const std::string name,
                     ParseJobName(EscapeForLog(job.name())));
    if (spec.jobs_.count(name) > 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "job '", name, "' is given twice",
          job.name() == name ? ""
                             : absl::StrCat(" (also as '", job.name(), "')")));
    }
    RETURN_IF_ERROR(CheckAnyTask(job, name));
    takes_any |= job.any_task();
    if (job.tasks().empty()) continue;
    Tasks& tasks = spec.jobs_[name];
    for (const auto& [index, address] : job.tasks()) {
      RETURN_IF_ERROR(CheckTask(name, index, address));
      tasks.emplace(index, WithoutFinalDot(address));
    }
  }
  if (takes_any && spec.num_ps() == 0) {
    return absl::InvalidArgumentError(
        "job 'worker' takes any task, but the cluster has no ps task: workers "
        "that hold the parameters (all-reduce) are listed with their "
        "addresses; or give it ps tasks");
  }
  if (spec.jobs_.empty()) return spec;
  RETURN_IF_ERROR(CheckSizes(spec.jobs_));
  RETURN_IF_ERROR(CheckPs(spec.jobs_));
  RETURN_IF_ERROR(CheckAddressesUnique(spec.jobs_));
  return spec;
}

absl::StatusOr<ClusterSpec> ClusterSpec::ForAllReduce() const {
  constexpr absl::string_view kContext = "all-reduce, for want of a ps task";
  RETURN_IF_ERROR(
      Annotate(CheckNoGaps(kWorkerJob, tasks(kWorkerJob)), kContext));
  ClusterSpec spec = *this;
  Tasks& ps = spec.jobs_[kPsJob];
  for (const TaskId& task : training_tasks()) {
    ps.emplace(static_cast<int32_t>(ps.size()),
               tasks(task.job()).at(task.index()));
  }
  if (ps.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kContext,
                     ": the cluster has no worker either; give it ps tasks, or "
                     "workers that hold the parameters"));
  }
  spec.is_all_reduce_ = true;
  return spec;
}

std::optional<int32_t> ClusterSpec::ShardOf(const TaskId& task) const {
  const Tasks& job = tasks(task.job());
  const auto own = job.find(task.index());
  if (!is_all_reduce_ || own == job.end()) return std::nullopt;
  for (const auto& [index, address] : tasks(kPsJob)) {
    if (address == own->second) return index;
  }
  return std::nullopt;
}

int ClusterSpec::num_tasks() const {
  int count = 0;
  for (const auto& [job, tasks] : jobs_) {
    count += static_cast<int>(tasks.size());
  }
  return count;
}

const ClusterSpec::Tasks& ClusterSpec::tasks(absl::string_view job) const {
  static const auto& kNone = *new Tasks();
  const auto it = jobs_.find(job);
  return it == jobs_.end() ? kNone : it->second;
}

std::vector<std::string> ClusterSpec::ps_addresses() const {
  std::vector<std::string> addresses;
  for (const auto& [index, address] : tasks(kPsJob)) {
    addresses.push_back(address);
  }
  return addresses;
}

absl::StatusOr<std::string> ClusterSpec::AddressOf(const TaskId& task) const {
  const Tasks& job = tasks(task.job());
  const auto it = job.find(task.index());
  if (it != job.end()) return it->second;
  return absl::InvalidArgumentError(absl::StrCat(
      TaskName(task), " is not in the cluster: job '", task.job(), "' has ",
      job.empty() ? "no tasks"
                  : absl::StrCat("the task indices ", Indices(job))));
}

TaskId ClusterSpec::chief() const {
  const Tasks& chief = tasks(kChiefJob);
  return chief.empty() ? MakeTaskId(kWorkerJob, 0)
                       : MakeTaskId(kChiefJob, chief.begin()->first);
}

std::vector<TaskId> ClusterSpec::training_tasks() const {
  if (takes_any_worker()) return {chief()};
  std::vector<TaskId> result;
  for (const char* job : {kChiefJob, kWorkerJob}) {
    for (const auto& [index, address] : tasks(job)) {
      result.push_back(MakeTaskId(job, index));
    }
  }
  return result;
}

ClusterDef ClusterSpec::TrainingDef() const {
  ClusterDef def;
  for (const char* const job : {kPsJob, kWorkerJob, kChiefJob}) {
    if (tasks(job).empty()) continue;
    JobDef* const out = def.add_job();
    out->set_name(job);
    out->mutable_tasks()->insert(tasks(job).begin(), tasks(job).end());
  }
  if (takes_any_worker()) {
    JobDef* const worker = def.add_job();
    worker->set_name(kWorkerJob);
    worker->set_any_task(true);
  }
  return def;
}

std::string ClusterSpec::Summary() const {
  if (empty()) return "standalone";
  std::vector<std::string> parts;
  if (is_all_reduce_) parts.push_back("all-reduce");
  for (const char* job : {kPsJob, kChiefJob, kWorkerJob, kEvaluatorJob}) {
    const Tasks& job_tasks = tasks(job);
    if (is_all_reduce_ && job == absl::string_view(kPsJob)) continue;
    if (!job_tasks.empty()) {
      parts.push_back(absl::StrCat(job, " ", job_tasks.size()));
    } else if (job == absl::string_view(kWorkerJob) && takes_any_worker()) {
      parts.push_back("any worker");
    }
  }
  return absl::StrJoin(parts, ", ");
}

std::string ClusterSpec::Difference(const ClusterSpec& a,
                                    absl::string_view a_name,
                                    const ClusterSpec& b,
                                    absl::string_view b_name) {
  for (const char* job : {kPsJob, kChiefJob, kWorkerJob, kEvaluatorJob}) {
    std::set<int32_t> indices;
    for (const auto& [index, address] : a.tasks(job)) indices.insert(index);
    for (const auto& [index, address] : b.tasks(job)) indices.insert(index);
    for (const int32_t index : indices) {
      const std::string a_address = AddressOrNone(a, job, index);
      const std::string b_address = AddressOrNone(b, job, index);
      if (a_address == b_address) continue;
      return absl::StrCat(TaskName(MakeTaskId(job, index)), " is ", a_address,
                          " in ", a_name, " and ", b_address, " in ", b_name);
    }
  }
  return "";
}

}  // namespace muster
