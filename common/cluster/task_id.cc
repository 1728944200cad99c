#include "common/cluster/task_id.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/nearest_name.h"

namespace muster {

TaskId MakeTaskId(absl::string_view job, int index) {
  TaskId task;
  task.set_job(std::string(job));
  task.set_index(index);
  return task;
}

std::string TaskName(const TaskId& task) {
  return absl::StrCat("/job:", task.job(), "/task:", task.index());
}

absl::StatusOr<TaskId> ParseTaskName(absl::string_view name) {
  absl::string_view rest = name;
  const size_t slash = rest.find('/', 1);
  int32_t index = 0;
  if (absl::ConsumePrefix(&rest, "/job:") && slash != absl::string_view::npos) {
    const absl::string_view job = name.substr(5, slash - 5);
    absl::string_view number = name.substr(slash);
    if (!job.empty() && absl::ConsumePrefix(&number, "/task:") &&
        std::all_of(number.begin(), number.end(), absl::ascii_isdigit) &&
        absl::SimpleAtoi(number, &index)) {
      return MakeTaskId(job, index);
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "task name must be like '/job:worker/task:1', found '", name, "'"));
}

absl::StatusOr<std::string> ParseJobName(absl::string_view name) {
  static const auto& kJobs = *new std::vector<std::string>{
      kPsJob, kWorkerJob, kChiefJob, kEvaluatorJob};
  if (name == "master" || name == "coordinator") return std::string(kChiefJob);
  if (std::count(kJobs.begin(), kJobs.end(), name) > 0) {
    return std::string(name);
  }
  return absl::InvalidArgumentError(UnknownNameMessage("job", name, kJobs));
}

bool operator==(const TaskId& a, const TaskId& b) {
  return a.index() == b.index() && a.job() == b.job();
}

bool operator!=(const TaskId& a, const TaskId& b) { return !(a == b); }

bool operator<(const TaskId& a, const TaskId& b) {
  return std::make_tuple(absl::string_view(a.job()), a.index()) <
         std::make_tuple(absl::string_view(b.job()), b.index());
}

}  // namespace muster
