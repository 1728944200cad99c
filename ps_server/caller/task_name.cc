#include "ps_server/caller/task_name.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/task_id.h"

namespace muster {
namespace {

constexpr size_t kMaxPrintedJobName = 40;
constexpr size_t kMaxNamed = 16;

}  // namespace

TaskKey KeyOf(const Sender& sender) {
  return {sender.task().job(), sender.task().index()};
}

Sender SenderOf(const TaskKey& key, uint64_t incarnation) {
  Sender sender;
  sender.mutable_task()->set_job(key.first);
  sender.mutable_task()->set_index(key.second);
  sender.set_incarnation(incarnation);
  return sender;
}

bool IsTrainingJob(absl::string_view job) {
  return job == kWorkerJob || job == kChiefJob;
}

std::string TaskName(const TaskKey& key) {
  return absl::StrCat(
      "/job:", absl::CHexEscape(key.first.substr(0, kMaxPrintedJobName)),
      "/task:", key.second);
}

std::string TaskName(const Sender& sender) { return TaskName(KeyOf(sender)); }

std::string TaskNames(const std::vector<TaskKey>& tasks) {
  std::string text;
  for (size_t i = 0; i < std::min(tasks.size(), kMaxNamed); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", TaskName(tasks[i]));
  }
  if (tasks.size() > kMaxNamed) {
    absl::StrAppend(&text, " and ", tasks.size() - kMaxNamed, " more");
  }
  return text;
}

}  // namespace muster
